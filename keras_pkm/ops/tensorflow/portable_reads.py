"""Reads in graphs that run, and train, without this package."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable
from collections.abc import Iterator
from typing import TypeAlias

import tensorflow as tf

# Takes a value table and slots.
ReadRows: TypeAlias = Callable[[tf.Variable, tf.Tensor], tf.Tensor]


@dataclasses.dataclass(frozen=True)
class PortableRead:
    """How value tables are read in an exported graph.

    Attributes:
        read_rows: function of a value table and int32 slots that returns their
            rows, as float32.
        training: bool. Whether the graph will be trained.
    """

    read_rows: ReadRows
    training: bool


_current: contextvars.ContextVar[PortableRead | None] = contextvars.ContextVar(
    "portable_read", default=None
)


@contextlib.contextmanager
def portable_reads(
    read_rows: ReadRows | None, training: bool
) -> Iterator[None]:
    """See `keras_pkm.ops.portable_reads`."""
    token = _current.set(PortableRead(read_rows or tf.gather, training))
    try:
        yield
    finally:
        _current.reset(token)


def current_read() -> PortableRead | None:
    """Returns the setting of `portable_reads`, or `None` outside of it."""
    return _current.get()
