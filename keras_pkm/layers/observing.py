"""Lets a caller observe what layers compute inside of any model."""

import contextlib
import contextvars
from collections.abc import Callable
from typing import Any

from keras_pkm.ops.contexts import setting


class Channel:
    """Passes what layers report to a function, within a context.

    For a graph the function is called when the graph is traced.

    Args:
        name: The name of what is reported.
    """

    def __init__(self, name: str):
        # A variable of the context, since replicas are computed in threads.
        self._observer: contextvars.ContextVar[Callable[..., Any] | None] = (
            contextvars.ContextVar(name, default=None)
        )

    def observed_by(
        self, observer: Callable[..., Any]
    ) -> contextlib.AbstractContextManager[None]:
        """Calls a function at each report within this context.

        Args:
            observer: The function.
        """
        return setting(self._observer, observer)

    def report(self, *arguments: Any) -> None:
        """Passes arguments to the observer, if there is one."""
        observer = self._observer.get()
        if observer is not None:
            observer(*arguments)


#: A memory, its slots and weights of shape `(tokens, num_heads, top_k)`, and a
#: mask of shape `(tokens,)`, false at padding, or `None`.
memory_reads = Channel("memory_reads")
#: A `MaskedBatchNormalization`, its inputs and its mask, or `None`.
normalizations = Channel("normalizations")
