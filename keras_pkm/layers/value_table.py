"""A table of values, of which memories read some rows."""

from typing import Any

import keras
from keras import ops

from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.backend import backend
from keras_pkm.ops.embedding_bag import embedding_bag
from keras_pkm.ops.portable_reads import in_portable_reads
from keras_pkm.ops.tensors import Tensor
from keras_pkm.ops.value_tables import mark_as_table


@keras.saving.register_keras_serializable("keras_pkm")
class ValueTable(keras.layers.Layer):
    """A table of values, one row for each slot of a memory.

    It reads weighted sums of rows,

        output[t] = Σ_heads Σ_j weights[t, head, j] · values[slots[t, head, j]]

    and keeps neither the rows nor their products for the backward pass (see
    `keras_pkm.ops.embedding_bag`). The gradient of `values` has one row for
    each slot that was read (`tf.IndexedSlices`, or a sparse tensor on torch; on
    JAX it is dense, and zero in all other rows).
    `keras_pkm.optimizers.PKMAdam` recognizes the variable and leaves all other
    rows unchanged. Several memories may share one table.

    Args:
        num_slots: int. Number of rows.
        value_dim: int. Width of the values.
        values_initializer: optional. Defaults to a normal one with variance
            `1 / value_dim`.
        values_regularizer: optional. It reads the whole table, so that each
            step changes all rows.
        values_constraint: optional. It rewrites the whole table at each step.
        tags: bool. Whether each row also has a tag, an int32 that identifies
            its owner, in the variable `tags` of shape `(num_slots,)`. The tag
            of an unclaimed row is zero. Defaults to `False`.
        **kwargs: further arguments of `keras.layers.Layer`, such as `name` and
            `dtype`. The values and their sums are float32 under every policy.

    Call arguments:
        slots: int32 tensor of shape `(tokens, num_heads, k)`, from 0 to
            `num_slots - 1`.
        weights: float tensor of the same shape.
        per_head: bool. Whether to return a sum for each head instead of one
            over all heads. Defaults to `False`.
        implementation: `"fastest"`, `"portable"` or `"auto"`, as for
            `keras_pkm.ops.embedding_bag`. Defaults to `"auto"`.

    Returns:
        float32 tensor of shape `(tokens, value_dim)`, or
        `(tokens, num_heads, value_dim)` with `per_head=True`.

    Example:

    >>> table = keras_pkm.layers.ValueTable(3, 2, values_initializer="ones")
    >>> slots = np.array([[[0, 2], [1, 1]]])
    >>> weights = np.array([[[0.5, 0.5], [2.0, 1.0]]])
    >>> table(slots, weights).numpy()
    array([[4., 4.]], dtype=float32)
    >>> table(slots, weights, per_head=True).numpy()
    array([[[1., 1.],
            [3., 3.]]], dtype=float32)
    """

    def __init__(
        self,
        num_slots: int,
        value_dim: int,
        values_initializer: Any = None,
        values_regularizer: Any = None,
        values_constraint: Any = None,
        tags: bool = False,
        **kwargs: Any,
    ):
        # Weights of reads stay in float32.
        super().__init__(**{"autocast": False, **kwargs})
        self.num_slots = positive_int("num_slots", num_slots)
        self.value_dim = positive_int("value_dim", value_dim)
        self.values_initializer = keras.initializers.get(values_initializer)
        self.values_regularizer = keras.regularizers.get(values_regularizer)
        self.values_constraint = keras.constraints.get(values_constraint)
        self.has_tags = bool(tags)
        self.tags: keras.Variable | None = None
        self._is_claimed = False
        self.supports_jit = backend.SUPPORTS_JIT

    def build(self, *_: Any) -> None:
        # Autocast would convert the whole table at each read.
        self.values = self.add_weight(
            shape=(self.num_slots, self.value_dim),
            initializer=self.values_initializer or first_values(),
            regularizer=self.values_regularizer,
            constraint=self.values_constraint,
            dtype="float32",
            autocast=False,
            name="values",
        )
        mark_as_table(self.values)
        if self.has_tags:
            self.tags = self.add_weight(
                shape=(self.num_slots,),
                initializer="zeros",
                dtype="int32",
                trainable=False,
                aggregation="only_first_replica",
                name="tags",
            )

    def call(
        self,
        slots: Tensor,
        weights: Tensor,
        per_head: bool = False,
        implementation: str = "auto",
    ) -> Tensor:
        heads, reads = slots.shape[-2:]
        row = (-1, reads if per_head else heads * reads)
        sums = embedding_bag(
            self.values,
            ops.reshape(slots, row),
            ops.reshape(weights, row),
            implementation,
        )
        if per_head:
            sums = ops.reshape(sums, (-1, heads, self.value_dim))
        return sums

    def check_claimed(self) -> None:
        """Checks that training can change a row.

        Raises:
            ValueError: the rows have tags, and none of them is claimed.
        """
        # Exported rows can be claimed later, by a patch.
        if self.tags is None or self._is_claimed or in_portable_reads():
            return
        tags = backend.present_value(self.tags)
        # Once is enough: steps that are not compiled would ask each time.
        self._is_claimed = tags is not None and bool(tags.any())
        if tags is not None and not self._is_claimed:
            raise ValueError(
                f"'{self.path}' must have rows that n-grams have claimed "
                "before it is trained, because no other row is read. Received: "
                "a table whose tags are all zero. Call `claim` of its memory."
            )

    def compute_output_spec(
        self,
        slots: keras.KerasTensor,
        weights: keras.KerasTensor,
        per_head: bool = False,
        implementation: str = "auto",
    ) -> keras.KerasTensor:
        tokens, heads, _ = slots.shape
        shape = (tokens, heads) if per_head else (tokens,)
        return keras.KerasTensor((*shape, self.value_dim), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "num_slots": self.num_slots,
            "value_dim": self.value_dim,
            "values_initializer": serialize(self.values_initializer),
            "values_regularizer": serialize(self.values_regularizer),
            "values_constraint": serialize(self.values_constraint),
            "tags": self.has_tags,
        }


def first_values() -> keras.initializers.Initializer:
    """Returns the initializer of the values for training from scratch.

    It is normal with variance 1 / `value_dim`, as in the paper.
    """
    return keras.initializers.VarianceScaling(
        mode="fan_out", distribution="untruncated_normal"
    )
