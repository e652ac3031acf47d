"""Settings that hold within a `with` block, in its thread alone."""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import TypeVar

_T = TypeVar("_T")


@contextlib.contextmanager
def setting(variable: contextvars.ContextVar[_T], value: _T) -> Iterator[None]:
    """Sets a context variable within a `with` block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
