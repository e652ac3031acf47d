"""Chooses between the fastest and the portable implementation."""

import contextlib
import contextvars

from keras_pkm.ops.arguments import one_of
from keras_pkm.ops.contexts import setting

IMPLEMENTATIONS = ("auto", "fastest", "portable")
_default: contextvars.ContextVar[str] = contextvars.ContextVar(
    "implementation", default="auto"
)


def use_implementation(name: str) -> contextlib.AbstractContextManager[None]:
    """Sets what `implementation="auto"` means for memories.

    It applies to eager computation, and to graphs that are traced, within this
    context.

    Args:
        name: `"fastest"`, `"portable"` or `"auto"`, as for the argument
            `implementation` of `keras_pkm.layers.ProductKeyMemory`.

    Example:

    >>> inputs = keras.Input((16,))
    >>> model = keras.Model(
    ...     inputs,
    ...     keras_pkm.layers.ProductKeyMemory(
    ...         num_sub_keys=8, num_heads=1, top_k=4, key_dim=8
    ...     )(inputs),
    ... )
    >>> with keras_pkm.ops.use_implementation("fastest"):
    ...     model.predict(np.ones((2, 16)), verbose=0).shape
    (2, 16)
    """
    return setting(_default, one_of("name", name, IMPLEMENTATIONS))


def fastest_by_default() -> contextlib.AbstractContextManager[None]:
    """Like `use_implementation("fastest")`, but an enclosing choice wins."""
    name = _default.get()
    return use_implementation("fastest" if name == "auto" else name)


def choose_implementation(name: str, training: bool | None = None) -> str:
    """Returns `"fastest"` or `"portable"`.

    Args:
        name: An implementation. `"auto"` stands for the choice of the innermost
            `use_implementation`.
        training: optional bool. If that is `"auto"`, too, the fastest
            implementation is used in training, since such graphs are not
            exported, and the portable one otherwise.
    """
    if name == "auto":
        name = _default.get()
    if name == "auto":
        name = "fastest" if training else "portable"
    return name
