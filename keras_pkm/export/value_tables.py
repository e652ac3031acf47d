"""The value tables of an exported model."""

import numpy as np
import tensorflow as tf

#: The values of `--values-dtype`.
DTYPES = ("float32", "bfloat16", "int8")

# Rows that are converted at a time: a table may fill the host's memory.
_CHUNK = 16_384


class ValueTable:
    """The values of one memory, read as float32.

    Attributes:
        num_slots: Number of slots of the memory. Slots keep their numbers.
        num_rows: Number of rows that are stored.
        width: Number of entries of a row.
        size: Number of bytes that are stored.
        variables: The `tf.Variable`s that are stored.
        trainable_variables: The variables that can be trained.
    """

    def __init__(
        self,
        values: tf.Variable,
        dtype: str = "float32",
        kept: np.ndarray | None = None,
        other: np.ndarray | None = None,
    ):
        self.num_slots = values.shape[0]
        self._rows = self._scales = None
        if kept is not None:
            # The row for all others comes last.
            rows = np.full(self.num_slots, kept.sum(), "int32")
            rows[kept] = np.arange(kept.sum())
            self._rows = tf.Variable(rows, trainable=False, name="rows")
        if dtype == "float32" and kept is None:
            self._values = values
        else:
            self._values, self._scales = _convert(values, dtype, kept, other)
        self.num_rows, self.width = self._values.shape

    @property
    def variables(self) -> list[tf.Variable]:
        parts = (self._values, self._scales, self._rows)
        return [part for part in parts if part is not None]

    @property
    def values(self) -> tf.Variable:
        """The stored rows, in their stored dtype."""
        return self._values

    @property
    def is_whole(self) -> bool:
        """Whether all rows are stored, bit for bit."""
        return self._rows is None and self._values.dtype == "float32"

    @property
    def size(self) -> int:
        return sum(
            part.shape.num_elements() * part.dtype.size
            for part in self.variables
        )

    @property
    def trainable_variables(self) -> list[tf.Variable]:
        return [part for part in self.variables if part.trainable]

    def read(self, slots: tf.Tensor) -> tf.Tensor:
        """Returns the float32 rows of int32 slots; reads no other rows."""
        rows = slots if self._rows is None else tf.gather(self._rows, slots)
        values = tf.cast(tf.gather(self._values, rows), "float32")
        if self._scales is None:
            return values
        return values * tf.gather(self._scales, rows)[..., None]


def int8_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns rows rounded to int8, and the float32 scale of each row."""
    largest = np.abs(rows).max(axis=1)
    rounded = np.rint(rows * (127 / np.maximum(largest, 1e-30))[:, None])
    return rounded.astype("int8"), (largest / 127).astype("float32")


def _convert(
    values: tf.Variable,
    dtype: str,
    kept: np.ndarray | None,
    other: np.ndarray | None,
) -> tuple[tf.Variable, tf.Variable | None]:
    """Copies the kept rows, converts them, and returns them with a scale."""
    numbers = np.arange(values.shape[0])
    if kept is not None:
        numbers = numbers[kept]
    count = len(numbers) + (kept is not None)
    shape = (count, values.shape[1])
    table = np.zeros(shape, tf.as_dtype(dtype).as_numpy_dtype)
    scales = np.zeros(count, "float32") if dtype == "int8" else None
    for first in range(0, len(numbers), _CHUNK):
        chunk = slice(first, min(first + _CHUNK, len(numbers)))
        rows = tf.gather(values, numbers[chunk]).numpy()
        if scales is not None:
            rows, scales[chunk] = int8_rows(rows)
        table[chunk] = rows
    if kept is not None and other is not None:
        table[-1] = other
    name = values.name.split(":")[0]
    # In fewer bits, most steps would be lost to rounding.
    is_trainable = values.trainable and dtype == "float32"
    return (
        tf.Variable(table, trainable=is_trainable, name=name),
        None
        if scales is None
        else tf.Variable(scales, trainable=False, name="scales"),
    )
