"""Lets a caller observe what memories read, in any model."""

import contextlib
import contextvars
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import TypeAlias

import keras

from keras_pkm.ops.tensors import Tensor

#: Takes a memory, its slots and weights of shape `(tokens, num_heads, top_k)`,
#: and a mask of shape `(tokens,)`, false at padding, or `None`.
Observer: TypeAlias = Callable[
    [keras.layers.Layer, Tensor, Tensor, Tensor | None], Any
]
# A variable of the context, since replicas are computed in threads.
_observer: contextvars.ContextVar[Observer | None] = contextvars.ContextVar(
    "observer", default=None
)


@contextlib.contextmanager
def observe_memories(observer: Observer) -> Iterator[None]:
    """Calls a function at each read of a memory within this context.

    For a graph the function is called when the graph is traced.

    Args:
        observer: The function.
    """
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def report_read(
    memory: keras.layers.Layer,
    slots: Tensor,
    weights: Tensor,
    mask: Tensor | None,
) -> None:
    """Passes a read of a memory to the observer, if there is one."""
    observer = _observer.get()
    if observer is not None:
        observer(memory, slots, weights, mask)
