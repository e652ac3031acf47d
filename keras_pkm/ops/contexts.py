"""Variables of the context: replicas are computed in threads."""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import TypeVar

_T = TypeVar("_T")


@contextlib.contextmanager
def setting(variable: contextvars.ContextVar[_T], value: _T) -> Iterator[None]:
    """Sets a variable of the context, and resets it at the end."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
