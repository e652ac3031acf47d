"""Graphs of stock operations alone, for programs without this package."""

import contextlib
import contextvars
from collections.abc import Callable
from collections.abc import Iterator
from typing import TypeAlias

import tensorflow as tf

# Of a value table and slots.
_ReadRows: TypeAlias = Callable[[tf.Variable, tf.Tensor], tf.Tensor]
_read_rows: contextvars.ContextVar[_ReadRows | None] = contextvars.ContextVar(
    "read_rows", default=None
)


@contextlib.contextmanager
def portable_forms(read_rows: _ReadRows = tf.gather) -> Iterator[None]:
    """Makes the graphs that are traced within it portable.

    Such a graph holds stock operations with stock gradients, so that a
    SavedModel of it runs, and trains, wherever TensorFlow does: kernels for one
    kind of device and gradients of our own would be lost. It takes more time
    and memory than other graphs; the gradient of a value table is row-sparse
    all the same.

    Args:
        read_rows: function of a value table and int32 slots that returns their
            rows, as float32: how value tables are read. Defaults to
            `tf.gather`.

    Example:

    >>> table = tf.Variable([[1.0], [2.0]])
    >>> @tf.function
    ... def read(slots, weights):
    ...     return keras_pkm.ops.embedding_bag(table, slots, weights)
    >>> with keras_pkm.ops.portable_forms():
    ...     read(tf.constant([[0, 1]]), tf.constant([[0.5, 0.5]])).numpy()
    array([[1.5]], dtype=float32)
    """
    token = _read_rows.set(read_rows)
    try:
        yield
    finally:
        _read_rows.reset(token)


def portable_read() -> _ReadRows | None:
    """How value tables are read within `portable_forms`, `None` elsewhere."""
    return _read_rows.get()
