"""Reads in graphs that run, and train, without this package."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import tensorflow as tf

from keras_pkm.ops.contexts import setting

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


def portable_reads(
    read_rows: ReadRows | None, training: bool
) -> contextlib.AbstractContextManager[None]:
    """See `keras_pkm.ops.portable_reads`."""
    return setting(_current, PortableRead(read_rows or tf.gather, training))


def current_read() -> PortableRead | None:
    """Returns the setting of `portable_reads`, or `None` outside of it."""
    return _current.get()
