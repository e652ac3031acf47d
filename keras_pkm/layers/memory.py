"""The base of memories: they address a table, read it, and combine reads."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_pkm.layers.observing import memory_reads
from keras_pkm.layers.stored_settings import StoredSettings
from keras_pkm.layers.token_ids import current_token_ids
from keras_pkm.layers.token_ids import known_ids
from keras_pkm.layers.token_ids import last_ids
from keras_pkm.layers.value_table import ValueTable
from keras_pkm.ops.arguments import check_activity_regularizer
from keras_pkm.ops.arguments import check_mask
from keras_pkm.ops.arguments import fraction
from keras_pkm.ops.arguments import one_of
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.arguments import positive_int_or_none
from keras_pkm.ops.backend import backend
from keras_pkm.ops.implementation import IMPLEMENTATIONS
from keras_pkm.ops.implementation import choose_implementation
from keras_pkm.ops.tensors import MemoryAccess
from keras_pkm.ops.tensors import Tensor
from keras_pkm.ops.tensors import keras_mask


class Memory(StoredSettings, keras.layers.Layer):
    """Base of all kinds of memory; each token reads a few rows of a table.

    A memory computes

        slots, weights = address(x)                 (k slots for each head)
        output = combine(x, Σ_heads Σ_j weights[j] · values[slots[j]])

    A kind of memory is a subclass that implements `address`, such as
    `keras_pkm.layers.ProductKeyMemory` and `keras_pkm.layers.NGramMemory`. It
    may also override `combine`. The whole package works with every kind:
    `keras_pkm.models.add_memory`, `keras_pkm.optimizers.PKMAdam`, teaching,
    patches, metrics, freezing and exports.

    The layer itself has no residual connection and no layer normalization.

    Args:
        num_slots: int. Number of rows of the table, below `2³¹`.
        num_heads: int. Number of heads.
        top_k: int. Number of slots that each head reads.
        value_dim: int. Width of the values. Defaults to the width of the
            inputs; if it differs from that, a projection without bias brings
            the output to the inputs' width.
        value_dropout: float in [0, 1). Dropout of the output. Defaults to `0`.
        values_initializer, values_regularizer, values_constraint: optional,
            see `keras_pkm.layers.ValueTable`.
        table: optional `keras_pkm.layers.ValueTable`, shared with other
            memories. Its own initializer, regularizer and constraint are used.
            A memory with a shared table has no config: rebuild its model in
            code, and use `load_weights`. Defaults to a table of its own.
        implementation: `"fastest"`, `"portable"` (operations of the backend
            alone) or `"auto"`: the fastest one in training and the portable
            one otherwise, so that exported models run anywhere. Defaults to
            `"auto"`; see `keras_pkm.ops.use_implementation`.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and
            `dtype`. The values and their weighted sums are float32 under every
            dtype policy.

    Call arguments:
        inputs: float tensor of shape `(..., dim)`, any leading dimensions.
        mask: optional bool or int tensor of shape `(...)`, true or 1 at
            tokens, false or 0 at padding. The output at padding is zero, and
            padding enters neither statistics nor any gradient. Defaults to the
            inputs' Keras mask, if they carry one.
        training: bool. Whether dropout and the like act as in training.
        return_memory_access: bool. Whether to return the slots read, too.
            Defaults to `False`.
        token_ids: int tensor of shape `(batch, length)`: the ids of the tokens
            of inputs of shape `(batch, length, dim)`, for kinds of memory whose
            `context_size` is above zero. Ids of earlier tokens may precede
            them, in shape `(batch, context_size - 1 + length)`. An id of -1
            means no token. Models of `keras_pkm.models` pass `token_ids`.

    Returns:
        A tensor of shape `(..., dim)`, or, with `return_memory_access=True`, a
        tuple of it and the memory access `(slots, weights)`: int32 and float32
        tensors of shape `(..., num_heads, top_k)`. The weights at padding are
        0.

    Example:

    A memory that chooses slots by the largest channels of its input:

    >>> class LargestChannels(keras_pkm.layers.Memory):
    ...     def address(self, tokens, mask, training):
    ...         weights, slots = keras.ops.top_k(tokens, self.top_k)
    ...         return slots[:, None], weights[:, None]
    >>> memory = LargestChannels(num_slots=64, num_heads=1, top_k=2)
    >>> memory(np.random.normal(size=(4, 10, 64))).shape
    TensorShape([4, 10, 64])

    Attributes:
        context_size: int. The number of ids that `address` needs for each
            token: its own and those of the tokens before it. If it is above
            zero, `address` takes them as a fourth argument, an int32 tensor of
            shape `(tokens, context_size)`, in the order of the text, with -1
            before the beginning of a text. Zero unless a subclass sets it.
        uses_inputs: bool. Whether the output depends on the inputs, and not on
            the token ids alone. True unless a subclass sets it.
    """

    context_size = 0
    uses_inputs = True

    def __init__(
        self,
        num_slots: int,
        num_heads: int,
        top_k: int,
        value_dim: int | None = None,
        value_dropout: float = 0.0,
        values_initializer: Any = None,
        values_regularizer: Any = None,
        values_constraint: Any = None,
        table: ValueTable | None = None,
        implementation: str = "auto",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_slots = positive_int("num_slots", num_slots)
        self.num_heads = positive_int("num_heads", num_heads)
        self.top_k = positive_int("top_k", top_k)
        self.value_dim = positive_int_or_none("value_dim", value_dim)
        self.value_dropout = fraction("value_dropout", value_dropout)
        self.values_initializer = keras.initializers.get(values_initializer)
        self.values_regularizer = keras.regularizers.get(values_regularizer)
        self.values_constraint = keras.constraints.get(values_constraint)
        self.implementation = one_of(
            "implementation", implementation, IMPLEMENTATIONS
        )
        # A `ValueTable` from `build` on.
        if table is not None and not isinstance(table, ValueTable):
            raise ValueError(
                "`table` must be a `keras_pkm.layers.ValueTable`. Received: "
                f"table={table!r}."
            )
        self.table: Any = table
        self._shared_table = table is not None
        if self.num_slots >= 2**31:
            raise ValueError(
                "`num_slots` must be below 2**31, because slots are numbered "
                f"in int32. Received: num_slots={num_slots}."
            )
        self.supports_masking = True
        self.supports_jit = backend.SUPPORTS_JIT

    def address(
        self,
        tokens: Tensor,
        mask: Tensor | None,
        training: bool | None,
        *token_ids: Tensor,
    ) -> MemoryAccess:
        """Returns the slots that each token reads, and their weights.

        Args:
            tokens: float tensor of shape `(tokens, dim)`, zero at padding.
            mask: optional bool tensor of shape `(tokens,)`, false at padding.
            training: optional bool.
            *token_ids: int32 tensor of shape `(tokens, context_size)`, unless
                `context_size` is zero.

        Returns:
            A tuple of integer slots and float weights, of shape
            `(tokens, num_heads, top_k)`. Weights at padding may be anything.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` must have a method `address`."
        )

    def build_address(self, dim: int) -> None:
        """Makes the layers and weights that `address` needs.

        Args:
            dim: The width of the inputs.
        """

    def read(
        self, slots: Tensor, weights: Tensor, implementation: str
    ) -> Tensor:
        """Returns what each token reads in the table.

        By default, this is the sum over heads and slots, of shape
        `(tokens, value_dim)`.

        Args:
            slots: int32 tensor of shape `(tokens, num_heads, top_k)`.
            weights: float32 tensor of the same shape, zero at padding.
            implementation: as `keras_pkm.layers.ValueTable` takes it.
        """
        return self.table(slots, weights, implementation=implementation)

    def combine(
        self, tokens: Tensor, reads: Tensor, training: bool | None
    ) -> Tensor:
        """Returns the output of each token.

        By default, this is what was read, projected to the inputs' width.

        Args:
            tokens: float tensor of shape `(tokens, dim)`, zero at padding.
            reads: what `read` returned, zero at padding.
            training: optional bool.

        Returns:
            A tensor of shape `(tokens, dim)`. At padding it may be anything.
        """
        if self.output_projection is not None:
            reads = self.output_projection(reads)
        return reads

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        dim = inputs_shape[-1]
        if dim is None:
            raise ValueError(
                "The last dimension of the inputs of a memory must be known. "
                f"Received: inputs_shape={inputs_shape}."
            )
        self.build_address(dim)
        if self.table is None:
            self.table = self.make_table(dim)
        self._check_table(self.value_width(dim))
        if not self.table.built:
            self.table.build()
        self.build_combine(dim)
        self.value_dropout_layer = keras.layers.Dropout(
            self.value_dropout, dtype=self.dtype_policy, name="value_dropout"
        )
        freeze_parts(self)

    def value_width(self, dim: int) -> int:
        """Returns the width of the values.

        Args:
            dim: The width of the inputs.
        """
        return self.value_dim or dim

    def make_table(
        self, dim: int, name: str = "table", **options: Any
    ) -> ValueTable:
        """Returns a table for this memory, not built yet.

        Args:
            dim: The width of the inputs.
            name: The name of the table.
            **options: Further arguments of the table.
        """
        return ValueTable(
            self.num_slots,
            self.value_width(dim),
            values_initializer=self.values_initializer,
            values_regularizer=self.values_regularizer,
            values_constraint=self.values_constraint,
            dtype=self.dtype_policy,
            name=name,
            **options,
        )

    def share_table(self, table: ValueTable) -> None:
        """Makes the memory read a table that other memories read, too.

        Args:
            table: The table. Its sizes are checked when the memory is built.
        """
        self.table = table
        self._shared_table = True

    def _check_table(self, value_dim: int) -> None:
        expected = (self.num_slots, value_dim)
        if (self.table.num_slots, self.table.value_dim) != expected:
            raise ValueError(
                "`table` must have the `num_slots` and the `value_dim` of its "
                f"memory, {expected}. Received: a table with "
                f"{self.table.num_slots} slots of width "
                f"{self.table.value_dim}."
            )

    def build_combine(self, dim: int) -> None:
        """Makes the layers and weights that `combine` needs.

        Args:
            dim: The width of the inputs.
        """
        value_dim = self.table.value_dim
        self.output_projection = None
        if value_dim != dim:
            self.output_projection = keras.layers.Dense(
                dim,
                use_bias=False,
                dtype=self.dtype_policy,
                name="output_projection",
            )
            self.output_projection.build((None, value_dim))

    def call(
        self,
        inputs: Tensor,
        mask: Tensor | None = None,
        training: bool | None = None,
        return_memory_access: bool = False,
        token_ids: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, MemoryAccess]:
        check_activity_regularizer(self, training, return_memory_access)
        if mask is None:
            mask = keras_mask(inputs)
        leading = ops.shape(inputs)[:-1]
        check_mask(inputs, mask)
        context = self._contexts(inputs, token_ids, mask)
        if mask is not None:
            mask = ops.reshape(ops.cast(mask, "bool"), (-1,))
        tokens = ops.reshape(inputs, (-1, inputs.shape[-1]))
        if mask is not None:
            # Padding may contain anything, including NaN.
            tokens = ops.where(mask[:, None], tokens, 0)

        slots, weights = self.address(tokens, mask, training, *context)
        slots, weights = ops.cast(slots, "int32"), ops.cast(weights, "float32")
        if mask is not None:
            weights = ops.where(mask[:, None, None], weights, 0)
        memory_reads.report(self, slots, weights, mask)
        chosen = choose_implementation(self.implementation, training)
        reads = self.read(slots, weights, chosen)
        reads = ops.cast(reads, self.compute_dtype)
        outputs = self.combine(tokens, reads, training)
        outputs = self.value_dropout_layer(outputs, training=training)
        if mask is not None:
            outputs = ops.where(mask[:, None], outputs, 0)

        outputs = ops.reshape(outputs, (*leading, inputs.shape[-1]))
        if not return_memory_access:
            return outputs
        access = (*leading, self.num_heads, self.top_k)
        return outputs, (
            ops.reshape(slots, access),
            ops.reshape(weights, access),
        )

    def _contexts(
        self, inputs: Tensor, token_ids: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, ...]:
        """What `address` takes besides: the last ids of each token, if any."""
        if not self.context_size:
            return ()
        if token_ids is None:
            token_ids = current_token_ids(self.name)
        token_ids = known_ids(inputs, token_ids, mask)
        contexts = last_ids(inputs, token_ids, self.context_size)
        return (ops.reshape(contexts, (-1, self.context_size)),)

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
        token_ids: keras.KerasTensor | None = None,
    ) -> Tensor | tuple[Tensor, MemoryAccess]:
        if self.context_size and token_ids is None:
            current_token_ids(self.name)
        outputs = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if not return_memory_access:
            return outputs
        access = (*inputs.shape[:-1], self.num_heads, self.top_k)
        return outputs, (
            keras.KerasTensor(access, dtype="int32"),
            keras.KerasTensor(access, dtype="float32"),
        )

    def parts(self) -> dict[str, list[keras.Variable | keras.layers.Layer]]:
        """Returns what `keras_pkm.models.freeze_memory` can freeze, by name.

        By default, these are `"values"`, and `"output"` if layers project the
        values to the width of the inputs. Subclasses add parts of their own.
        """
        output = self.output_layers()
        return {
            "values": [self.table.values],
            **({"output": output} if output else {}),
        }

    def output_layers(self) -> list[keras.layers.Layer]:
        """Returns the layers that `build_combine` made."""
        # A kind of memory may make others.
        projection = getattr(self, "output_projection", None)
        return [] if projection is None else [projection]

    def suited_to(self, tokenizer: Any) -> "Memory":
        """Returns the memory to add to a model with a tokenizer.

        Args:
            tokenizer: `keras_hub.tokenizers.Tokenizer`, or `None`.
        """
        return self

    # What the rows of the memory depend on, besides weights.

    def stored_settings(self) -> dict[str, Any]:
        return self.addressing()

    def addressing(self) -> dict[str, Any]:
        """Returns the arguments by which tokens find their slots."""
        return {}

    def needed_rows(self, slots: np.ndarray, tags: np.ndarray) -> np.ndarray:
        """Returns the slots of the rows that the given rows depend on.

        Args:
            slots: int64 array: the slots of the given rows.
            tags: int32 array of shape `(num_slots,)`: the tags of the table.
        """
        return slots[:0]

    def unread_row(self, width: int) -> np.ndarray:
        """Returns the row that replaces all unread rows in a pruned export.

        Args:
            width: int. The width of the table.
        """
        return np.zeros(width, "float32")

    def check_tags(self, tags: np.ndarray) -> None:
        """Checks that no row would lack a row that it depends on.

        Args:
            tags: int32 array of shape `(num_slots,)`: the table's new tags.

        Raises:
            ValueError: a row would lack a row that it depends on.
        """

    def get_config(self) -> dict[str, Any]:
        if self._shared_table:
            raise ValueError(
                f"'{self.name}' reads a `table` that other memories may share, "
                "which a config cannot say: copies would have tables of their "
                "own. Build the model by your code, and keep its weights with "
                "`save_weights` and `load_weights`. The backbones that "
                "`add_memory(..., share_table=True)` returns have configs and "
                "presets; clone them by `from_config`."
            )
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "num_slots": self.num_slots,
            "num_heads": self.num_heads,
            "top_k": self.top_k,
            "value_dim": self.value_dim,
            "value_dropout": self.value_dropout,
            "values_initializer": serialize(self.values_initializer),
            "values_regularizer": serialize(self.values_regularizer),
            "values_constraint": serialize(self.values_constraint),
            "implementation": self.implementation,
        }


def freeze_parts(layer: keras.layers.Layer) -> None:
    """Freezes all parts of a layer that is made frozen.

    Keras has told it only to the parts that were there already.
    """
    if not layer.trainable:
        for part in layer._flatten_layers(include_self=False):
            part.trainable = False
