"""Reads in graphs that run, and train, without this package."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable
from collections.abc import Iterator
from typing import TypeAlias

import tensorflow as tf

# Takes a value table and slots.
_ReadRows: TypeAlias = Callable[[tf.Variable, tf.Tensor], tf.Tensor]


@dataclasses.dataclass(frozen=True)
class PortableRead:
    """How value tables are read in an exported graph.

    Attributes:
        read_rows: function of a value table and int32 slots that returns their
            rows, as float32.
        training: bool. Whether the graph will be trained.
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
    """Makes graphs that are traced within this context run anywhere.

    Such graphs contain TensorFlow's own operations with TensorFlow's own
    gradients: a program that loads a SavedModel does not have this package's
    gradients. The `implementation` of each layer is ignored here.

    Args:
        read_rows: function of a value table and int32 slots that returns their
            rows, as float32. It reads the value tables. Defaults to
            `tf.gather`.
        training: bool. With `True` the gradient of a table is row-sparse, and
            each read keeps `tokens * reads * width` floats. With `False` rows
            are read in blocks of tokens, which needs little memory, and the
            gradient of a table is dense. Defaults to `False`.

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
    """Returns the setting of `portable_reads`, or `None` outside of it."""
    return _current.get()
