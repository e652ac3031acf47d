"""The product-key memory layer."""

import math
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from keras_pkm.layers.memory_arguments import check_memory_sizes
from keras_pkm.layers.memory_arguments import known_width
from keras_pkm.layers.memory_observer import report_read
from keras_pkm.layers.padding_mask import flatten_padding_mask
from keras_pkm.layers.query_normalization import build_query_normalization
from keras_pkm.layers.query_normalization import make_query_normalization
from keras_pkm.layers.query_normalization import normalize_queries
from keras_pkm.layers.weight_options import WeightOptions
from keras_pkm.ops.arguments import fraction
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.arguments import positive_int_or_none
from keras_pkm.ops.embedding_bag import embedding_bag
from keras_pkm.ops.implementation import check_implementation
from keras_pkm.ops.implementation import choose_implementation
from keras_pkm.ops.product_key_search import product_key_search
from keras_pkm.ops.read_weights import read_weights


@keras.saving.register_keras_serializable("keras_pkm")
class ProductKeyMemory(keras.layers.Layer):
    """A large key-value memory; each token reads a few of its slots.

    Each of the `num_heads` heads turns a token into a query, finds the `top_k`
    best of the `num_sub_keys²` slots, and reads their values:

        q = normalize(x W + b)                        (one query a head)
        slots, scores = the top_k best q · key(slot)
        PKM(x) = Σ_heads Σ_j softmax(scores)[j] · values[slots[j]]

    A slot's key is a pair of sub-keys, one for each half of the query, so that
    finding the best of `num_sub_keys²` slots costs `2 · num_sub_keys` dot
    products (see `keras_pkm.ops.product_key_search`). More slots add capacity
    but hardly any time per token.

    The layer itself has no residual connection and no layer normalization;
    `keras_pkm.layers.PKMTransformerEncoder` places it in a Transformer block.
    The gradient of `memory_values` has one row for each slot that was read
    (`tf.IndexedSlices`). Train it with `keras_pkm.optimizers.PKMAdam`, which
    leaves the other rows unchanged.

    Args:
        num_sub_keys: int. Number of sub-keys for each half of a query; the
            memory has `num_sub_keys²` slots. Defaults to `512` (262,144 slots).
        num_heads: int. Number of heads. Each has its own queries and sub-keys;
            all share the values. Defaults to `4`.
        top_k: int. Number of slots that each head reads, at most
            `num_sub_keys`. Defaults to `32`.
        key_dim: int, even. Width of a head's query. Defaults to `256`.
        value_dim: int. Width of the values. Defaults to the width of the
            inputs; if it differs from that, a projection without bias brings
            the output to the inputs' width.
        query_normalization: `"batch"`, `"layer"` or `None`. Batch
            normalization spreads the queries over the keys, and so the reads
            over the slots. Its moments exclude padding and are taken over
            all replicas. Defaults to `"batch"`.
        query_dropout, value_dropout: float in [0, 1). Default to `0`.
        sub_keys_initializer: optional. Defaults to a uniform one around 0.
        sub_keys_regularizer, sub_keys_constraint: optional.
        values_initializer: optional. Defaults to a normal one with variance
            `1 / value_dim`.
        values_regularizer: optional. It reads the whole table, so that each
            step changes all rows.
        values_constraint: optional. It rewrites the whole table at each step.
        implementation: `"fastest"`, `"portable"` (TensorFlow's operations) or
            `"auto"`: the fastest one in training and the portable one
            otherwise, so that exported models run anywhere. Defaults to
            `"auto"`; see `keras_pkm.ops.use_implementation`.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and
            `dtype`. Queries, scores, softmax and the weighted sum are float32
            under every dtype policy; float16 projections overflow at 65,504.

    Call arguments:
        inputs: float tensor of shape `(..., dim)`, any leading dimensions.
        mask: optional bool or int tensor of shape `(...)`, true or 1 at
            tokens, false or 0 at padding. The output at padding is zero, and
            padding enters neither the batch norm's statistics nor any
            gradient. Defaults to the inputs' Keras mask, if they carry one.
        training: bool. Whether batch norm and dropout act as in training.
        return_memory_access: bool. Whether to return the slots read, too.
            Defaults to `False`.
        padding_mask: an alias of `mask`.

    Returns:
        A tensor of shape `(..., dim)`, or, with `return_memory_access=True`, a
        tuple of it and the memory access `(slots, weights)`: int32 and float32
        tensors of shape `(..., num_heads, top_k)`, sorted by descending
        weight. The weights of a head sum to 1; at padding they are 0.

    Example:

    >>> memory = keras_pkm.layers.ProductKeyMemory(
    ...     num_sub_keys=32, num_heads=2, top_k=8, key_dim=16
    ... )
    >>> tokens = np.random.normal(size=(4, 10, 64))
    >>> outputs, (slots, weights) = memory(tokens, return_memory_access=True)
    >>> outputs.shape, slots.shape
    (TensorShape([4, 10, 64]), TensorShape([4, 10, 2, 8]))

    References:

    - [Lample et al., 2019](https://arxiv.org/abs/1907.05242)
    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881)
    """

    def __init__(
        self,
        num_sub_keys: int = 512,
        num_heads: int = 4,
        top_k: int = 32,
        key_dim: int = 256,
        value_dim: int | None = None,
        query_normalization: str | None = "batch",
        query_dropout: float = 0.0,
        value_dropout: float = 0.0,
        sub_keys_initializer: Any = None,
        sub_keys_regularizer: Any = None,
        sub_keys_constraint: Any = None,
        values_initializer: Any = None,
        values_regularizer: Any = None,
        values_constraint: Any = None,
        implementation: str = "auto",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_sub_keys = positive_int("num_sub_keys", num_sub_keys)
        self.num_heads = positive_int("num_heads", num_heads)
        self.top_k = positive_int("top_k", top_k)
        self.key_dim = positive_int("key_dim", key_dim)
        self.value_dim = positive_int_or_none("value_dim", value_dim)
        self.query_dropout = fraction("query_dropout", query_dropout)
        self.value_dropout = fraction("value_dropout", value_dropout)
        self._sub_keys_options = WeightOptions.of(
            sub_keys_initializer, sub_keys_regularizer, sub_keys_constraint
        )
        self._values_options = WeightOptions.of(
            values_initializer, values_regularizer, values_constraint
        )
        self.implementation = check_implementation(implementation)
        check_memory_sizes(self)
        self._query_normalization = query_normalization
        self.query_normalization = make_query_normalization(query_normalization)
        self.supports_masking = True
        # XLA's top-k on CPU takes about twice as long as TensorFlow's, and its
        # gather of resource rows has no sparse gradient.
        self.supports_jit = False

    @property
    def num_slots(self) -> int:
        """Number of slots of the memory, `num_sub_keys²`."""
        return self.num_sub_keys**2

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        dim = known_width(inputs_shape)
        value_dim = self.value_dim or dim
        half = self.key_dim // 2
        bound = 1 / math.sqrt(half)
        channels = self.num_heads * self.key_dim
        self.query_projection = keras.layers.Dense(
            channels, dtype=self.dtype_policy, name="query_projection"
        )
        self.query_projection.build((None, dim))
        build_query_normalization(
            self.query_normalization, self.num_heads, self.key_dim
        )
        self.query_dropout_layer = keras.layers.Dropout(
            self.query_dropout, dtype="float32", name="query_dropout"
        )
        self.sub_keys = self.add_weight(
            shape=(self.num_heads, 2, self.num_sub_keys, half),
            autocast=False,
            name="sub_keys",
            **self._sub_keys_options.arguments(
                keras.initializers.RandomUniform(-bound, bound)
            ),
        )
        # Autocast would convert the whole table at each read.
        self.memory_values = self.add_weight(
            shape=(self.num_slots, value_dim),
            dtype="float32",
            autocast=False,
            name="memory_values",
            **self._values_options.arguments(
                keras.initializers.RandomNormal(stddev=1 / math.sqrt(value_dim))
            ),
        )
        self.output_projection = None
        if value_dim != dim:
            self.output_projection = keras.layers.Dense(
                dim,
                use_bias=False,
                dtype=self.dtype_policy,
                name="output_projection",
            )
            self.output_projection.build((None, value_dim))
        self.value_dropout_layer = keras.layers.Dropout(
            self.value_dropout, dtype=self.dtype_policy, name="value_dropout"
        )

    def call(
        self,
        inputs: tf.Tensor,
        mask: tf.Tensor | None = None,
        training: bool | None = None,
        return_memory_access: bool = False,
        padding_mask: tf.Tensor | None = None,
    ) -> tf.Tensor | tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
        leading = ops.shape(inputs)[:-1]
        mask = flatten_padding_mask(inputs, mask, padding_mask)
        tokens = ops.reshape(inputs, (-1, inputs.shape[-1]))
        if mask is not None:
            # Padding may contain anything, including NaN.
            tokens = ops.where(mask[:, None], tokens, 0)

        queries = self._queries(tokens, mask, training)
        chosen = choose_implementation(self.implementation, training)
        slots, scores = product_key_search(
            queries, self.sub_keys, self.top_k, chosen
        )
        weights = read_weights(scores, mask)
        report_read(self, slots, weights, mask)

        reads = (-1, self.num_heads * self.top_k)
        outputs = embedding_bag(
            self.memory_values,
            ops.reshape(slots, reads),
            ops.reshape(weights, reads),
            chosen,
        )
        outputs = ops.cast(outputs, self.compute_dtype)
        if self.output_projection is not None:
            outputs = self.output_projection(outputs)
        outputs = self.value_dropout_layer(outputs, training=training)
        outputs = ops.reshape(outputs, (*leading, inputs.shape[-1]))
        if not return_memory_access:
            return outputs
        access = (*leading, self.num_heads, self.top_k)
        return outputs, (
            ops.reshape(slots, access),
            ops.reshape(weights, access),
        )

    def _queries(
        self, tokens: tf.Tensor, mask: tf.Tensor | None, training: bool | None
    ) -> tf.Tensor:
        """Float32 queries of shape `(tokens, num_heads, key_dim)`."""
        queries = ops.cast(self.query_projection(tokens), "float32")
        queries = normalize_queries(
            self.query_normalization, queries, self.num_heads, mask, training
        )
        return self.query_dropout_layer(queries, training=training)

    def compute_output_shape(
        self, inputs_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return inputs_shape

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        mask: keras.KerasTensor | None = None,
        training: bool | None = None,
        return_memory_access: bool = False,
        padding_mask: keras.KerasTensor | None = None,
    ) -> (
        keras.KerasTensor
        | tuple[keras.KerasTensor, tuple[keras.KerasTensor, keras.KerasTensor]]
    ):
        outputs = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if not return_memory_access:
            return outputs
        access = (*inputs.shape[:-1], self.num_heads, self.top_k)
        return outputs, (
            keras.KerasTensor(access, dtype="int32"),
            keras.KerasTensor(access, dtype="float32"),
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_sub_keys": self.num_sub_keys,
            "num_heads": self.num_heads,
            "top_k": self.top_k,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "query_normalization": self._query_normalization,
            "query_dropout": self.query_dropout,
            "value_dropout": self.value_dropout,
            **self._sub_keys_options.config("sub_keys"),
            **self._values_options.config("values"),
            "implementation": self.implementation,
        }
