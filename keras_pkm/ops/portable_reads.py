"""Reads in graphs that programs without this package run, and train."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable
from collections.abc import Iterator
from typing import TypeAlias

import tensorflow as tf

# Of a value table and slots.
_ReadRows: TypeAlias = Callable[[tf.Variable, tf.Tensor], tf.Tensor]


@dataclasses.dataclass(frozen=True)
class PortableRead:
    """How value tables are read in an exported graph.

    Attributes:
        read_rows: function of a value table and int32 slots that returns their
            rows, as float32.
        training: bool. Whether the graph is to be trained.
    """

    read_rows: _ReadRows
    training: bool


_current: contextvars.ContextVar[PortableRead | None] = contextvars.ContextVar(
    "portable_read", default=None
)


@contextlib.contextmanager
def portable_reads(
    read_rows: _ReadRows = tf.gather, training: bool = False
) -> Iterator[None]:
    """Makes graphs that are traced within it run and train everywhere.

    They contain TensorFlow's own operations with TensorFlow's own gradients: a
    program that loads a SavedModel does not have those of this package. The
    implementations that layers were made with do not count here.

    Args:
        read_rows: function of a value table and int32 slots that returns their
            rows, as float32: how value tables are read. Defaults to
            `tf.gather`.
        training: bool. With `True` the gradient of a table is row-sparse, and
            each read contains `tokens * reads * width` floats. With `False`
            rows are read in blocks of tokens, in little memory, and the
            gradient of the table has all its rows. Defaults to `False`.

    Example:

    >>> table = tf.Variable([[1.0], [2.0]])
    >>> @tf.function
    ... def read(slots, weights):
    ...     return keras_pkm.ops.embedding_bag(table, slots, weights)
    >>> with keras_pkm.ops.portable_reads():
    ...     read(tf.constant([[0, 1]]), tf.constant([[0.5, 0.5]])).numpy()
    array([[1.5]], dtype=float32)
    """
    token = _current.set(PortableRead(read_rows, training))
    try:
        yield
    finally:
        _current.reset(token)


def current_read() -> PortableRead | None:
    """How value tables are read within `portable_reads`, `None` elsewhere."""
    return _current.get()
