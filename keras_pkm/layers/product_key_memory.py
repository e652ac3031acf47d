"""The product-key memory layer."""

import math
from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

from keras_pkm.layers.memory import Memory
from keras_pkm.layers.query_normalization import make_query_normalization
from keras_pkm.layers.query_normalization import normalize
from keras_pkm.layers.query_normalization import normalized_shape
from keras_pkm.ops.arguments import boolean
from keras_pkm.ops.arguments import fraction
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.arguments import positive_ints
from keras_pkm.ops.implementation import choose_implementation
from keras_pkm.ops.product_key_search import product_key_search
from keras_pkm.ops.product_key_search import read_weights
from keras_pkm.ops.tensors import MemoryAccess
from keras_pkm.ops.tensors import Tensor


@keras.saving.register_keras_serializable("keras_pkm")
class ProductKeyMemory(Memory):
    """A large key-value memory; each token reads a few of its slots.

    Each of the `num_heads` heads turns a token into a query, finds the `top_k`
    best of the `num_sub_keys²` slots, and reads their values:

        q = normalize(x W + b)                        (one query per head)
        slots, scores = the top_k best q · key(slot)
        PKM(x) = Σ_heads Σ_j softmax(scores)[j] · values[slots[j]]

    A slot's key is a pair of sub-keys, one for each half of the query, so that
    finding the best of `num_sub_keys²` slots costs `2 · num_sub_keys` dot
    products (see `keras_pkm.ops.product_key_search`). More slots add capacity
    but hardly any time per token.

    With `gate=True` the output is that of Memory+,

        Memory+(x) = (PKM(x) ⊙ silu(x W₁ + b₁)) W₂ + b₂

    The layer itself has no residual connection and no layer normalization;
    `keras_pkm.models.add_memory` places it in Transformer blocks. Train it
    with `keras_pkm.optimizers.PKMAdam`, which changes only the rows of the
    table that tokens have read.

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
        query_normalization: `"batch"`, `"layer"`, `"half_layer"` or `None`.
            Batch normalization spreads the queries over the keys, and so the
            reads over the slots. Its moments exclude padding and are taken
            over all replicas. `"layer"` normalizes each query, and
            `"half_layer"` each half of one. Defaults to `"batch"`.
        query_hidden_dims: tuple of int. The widths of the hidden layers of the
            network that computes the queries. Each is followed by the same
            normalization as the queries, and by a ReLU. Defaults to no hidden
            layers: a single projection.
        query_dropout, value_dropout: float in [0, 1). Default to `0`.
        key_dropout: float in [0, 1). The probability that a sub-key is dropped
            in a train step, for all tokens. Defaults to `0`.
        head_dropout: float in [0, 1). The probability that a head reads
            nothing in a train step; the reads of the other heads are scaled
            up. Defaults to `0`.
        gate: bool. Whether the output is gated, as in Memory+. Defaults to
            `False`.
        sub_keys_initializer: optional. Defaults to a uniform one around 0.
        sub_keys_regularizer, sub_keys_constraint: optional.
        **kwargs: further arguments of `keras_pkm.layers.Memory`:
            `values_initializer`, `values_regularizer`, `values_constraint`,
            `table`, `implementation`, `name`, `dtype`. Queries, scores,
            softmax and the weighted sum are float32 under every dtype policy;
            float16 projections overflow at 65,504.

    Call arguments:
        inputs: float tensor of shape `(..., dim)`, any leading dimensions.
        mask: optional bool or int tensor of shape `(...)`, true or 1 at
            tokens, false or 0 at padding. The output at padding is zero, and
            padding enters neither the batch norm's statistics nor any
            gradient. Defaults to the inputs' Keras mask, if they carry one.
        training: bool. Whether batch norm and dropout act as in training.
        return_memory_access: bool. Whether to return the slots read, too.
            Defaults to `False`.

    Returns:
        A tensor of shape `(..., dim)`, or, with `return_memory_access=True`, a
        tuple of it and the memory access `(slots, weights)`: int32 and float32
        tensors of shape `(..., num_heads, top_k)`, sorted by descending
        weight. The weights of a head sum to 1, unless `head_dropout` acts or
        `key_dropout` leaves the head no sub-keys; at padding they are 0.

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
    - [Zhou et al., 2020](https://arxiv.org/abs/2004.13342), DropHead
    - [Berges et al., 2024](https://arxiv.org/abs/2412.09764), Memory+
    """

    def __init__(
        self,
        num_sub_keys: int = 512,
        num_heads: int = 4,
        top_k: int = 32,
        key_dim: int = 256,
        value_dim: int | None = None,
        query_normalization: str | None = "batch",
        query_hidden_dims: Iterable[int] = (),
        query_dropout: float = 0.0,
        value_dropout: float = 0.0,
        key_dropout: float = 0.0,
        head_dropout: float = 0.0,
        gate: bool = False,
        sub_keys_initializer: Any = None,
        sub_keys_regularizer: Any = None,
        sub_keys_constraint: Any = None,
        **kwargs: Any,
    ):
        self._check_sizes(num_sub_keys, top_k, key_dim)
        super().__init__(
            num_slots=int(num_sub_keys) ** 2,
            num_heads=num_heads,
            top_k=top_k,
            value_dim=value_dim,
            value_dropout=value_dropout,
            **kwargs,
        )
        self.num_sub_keys = int(num_sub_keys)
        self.key_dim = int(key_dim)
        self.query_normalization = query_normalization
        self.query_hidden_dims = positive_ints(
            "query_hidden_dims", query_hidden_dims
        )
        self.query_dropout = fraction("query_dropout", query_dropout)
        self.key_dropout = fraction("key_dropout", key_dropout)
        self.head_dropout = fraction("head_dropout", head_dropout)
        self.gate = boolean("gate", gate)
        self.sub_keys_initializer = keras.initializers.get(sub_keys_initializer)
        self.sub_keys_regularizer = keras.regularizers.get(sub_keys_regularizer)
        self.sub_keys_constraint = keras.constraints.get(sub_keys_constraint)
        self.query_normalization_layer = make_query_normalization(
            query_normalization
        )

    @staticmethod
    def _check_sizes(num_sub_keys: Any, top_k: Any, key_dim: Any) -> None:
        if positive_int("num_sub_keys", num_sub_keys) > 46_340:
            raise ValueError(
                "`num_sub_keys` must be at most 46,340, because slots are "
                f"numbered in int32. Received: num_sub_keys={num_sub_keys}."
            )
        if positive_int("top_k", top_k) > num_sub_keys:
            raise ValueError(
                "`top_k` must be at most `num_sub_keys`, because each half of "
                "a query has no more sub-keys to choose from. Received: "
                f"top_k={top_k}, num_sub_keys={num_sub_keys}."
            )
        if positive_int("key_dim", key_dim) % 2:
            raise ValueError(
                "`key_dim` must be even, because each half of a query has its "
                f"own sub-keys. Received: key_dim={key_dim}."
            )

    def build_address(self, dim: int) -> None:
        self.query_hidden_layers = []
        self.query_hidden_normalizations = []
        for number, units in enumerate(self.query_hidden_dims, 1):
            name = f"query_hidden_{number}"
            self.query_hidden_layers.append(self._dense(dim, units, name))
            normalization = make_query_normalization(
                self.query_normalization, f"{name}_normalization"
            )
            if normalization is not None:
                normalization.build((None, units))
            self.query_hidden_normalizations.append(normalization)
            dim = units
        self.query_projection = self._dense(
            dim, self.num_heads * self.key_dim, "query_projection"
        )
        self._query_shape = normalized_shape(
            self.query_normalization, self.num_heads, self.key_dim
        )
        if self.query_normalization_layer is not None:
            self.query_normalization_layer.build((None, *self._query_shape))
        self.query_dropout_layer = keras.layers.Dropout(
            self.query_dropout, dtype="float32", name="query_dropout"
        )
        # It keeps a sub-key, or all reads of a head, for all tokens or none.
        self.key_dropout_layer = keras.layers.Dropout(
            self.key_dropout, dtype="float32", name="key_dropout"
        )
        self.head_dropout_layer = keras.layers.Dropout(
            self.head_dropout,
            noise_shape=(1, self.num_heads, 1),
            dtype="float32",
            name="head_dropout",
        )
        half = self.key_dim // 2
        bound = 1 / math.sqrt(half)
        self.sub_keys = self.add_weight(
            shape=(self.num_heads, 2, self.num_sub_keys, half),
            initializer=self.sub_keys_initializer
            or keras.initializers.RandomUniform(-bound, bound),
            regularizer=self.sub_keys_regularizer,
            constraint=self.sub_keys_constraint,
            autocast=False,
            name="sub_keys",
        )

    def build_combine(self, dim: int) -> None:
        if not self.gate:
            super().build_combine(dim)
            return
        value_dim = self.table.value_dim
        self.gate_projection = self._dense(
            dim, value_dim, "gate_projection", activation="silu"
        )
        self.output_projection = self._dense(
            value_dim, dim, "output_projection"
        )

    def _dense(
        self, dim: int, units: int, name: str, activation: str | None = None
    ) -> keras.layers.Dense:
        dense = keras.layers.Dense(
            units, activation=activation, dtype=self.dtype_policy, name=name
        )
        dense.build((None, dim))
        return dense

    def address(
        self, tokens: Tensor, mask: Tensor | None, training: bool | None
    ) -> MemoryAccess:
        dropped = self._dropped_keys(training)
        slots, scores = product_key_search(
            self._queries(tokens, mask, training),
            self.sub_keys,
            self.top_k,
            choose_implementation(self.implementation, training),
            dropped,
        )
        weights = read_weights(scores)
        if dropped is not None:
            # A head with no sub-keys left has found dropped slots only.
            weights = ops.where(scores < -1e30, 0, weights)
        return slots, self.head_dropout_layer(weights, training=training)

    def _queries(
        self, tokens: Tensor, mask: Tensor | None, training: bool | None
    ) -> Tensor:
        """Float32 queries of shape `(tokens, num_heads, key_dim)`."""
        for dense, normalization in zip(
            self.query_hidden_layers, self.query_hidden_normalizations
        ):
            hidden = ops.cast(dense(tokens), "float32")
            hidden = normalize(normalization, hidden, mask, training)
            tokens = ops.relu(hidden)
        queries = ops.cast(self.query_projection(tokens), "float32")
        queries = normalize(
            self.query_normalization_layer,
            ops.reshape(queries, (-1, *self._query_shape)),
            mask,
            training,
        )
        queries = ops.reshape(queries, (-1, self.num_heads, self.key_dim))
        return self.query_dropout_layer(queries, training=training)

    def _dropped_keys(self, training: bool | None) -> Tensor | None:
        if not (training and self.key_dropout):
            return None
        kept = ops.ones((self.num_heads, 2, self.num_sub_keys))
        return self.key_dropout_layer(kept, training=True) == 0

    def combine(
        self, tokens: Tensor, reads: Tensor, training: bool | None
    ) -> Tensor:
        if self.gate:
            reads = reads * self.gate_projection(tokens)
        return super().combine(tokens, reads, training)

    def output_layers(self) -> list[keras.layers.Layer]:
        gate = [self.gate_projection] if self.gate else []
        return [*super().output_layers(), *gate]

    def parts(self) -> dict[str, list[keras.Variable | keras.layers.Layer]]:
        queries = [
            *self.query_hidden_layers,
            *self.query_hidden_normalizations,
            self.query_projection,
            self.query_normalization_layer,
        ]
        return {
            **super().parts(),
            "keys": [self.sub_keys],
            "queries": [layer for layer in queries if layer is not None],
        }

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        config = super().get_config()
        del config["num_slots"]
        return {
            **config,
            "num_sub_keys": self.num_sub_keys,
            "key_dim": self.key_dim,
            "query_normalization": self.query_normalization,
            "query_hidden_dims": list(self.query_hidden_dims),
            "query_dropout": self.query_dropout,
            "key_dropout": self.key_dropout,
            "head_dropout": self.head_dropout,
            "gate": self.gate,
            "sub_keys_initializer": serialize(self.sub_keys_initializer),
            "sub_keys_regularizer": serialize(self.sub_keys_regularizer),
            "sub_keys_constraint": serialize(self.sub_keys_constraint),
        }
