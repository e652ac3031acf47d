"""Chooses between the fastest and the portable implementation."""

import contextlib
import contextvars
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from keras_pkm.ops.portable_reads import current_read

IMPLEMENTATIONS = ("auto", "fastest", "portable")
_default: contextvars.ContextVar[str] = contextvars.ContextVar(
    "implementation", default="auto"
)


@contextlib.contextmanager
def use_implementation(name: str) -> Iterator[None]:
    """Sets the implementation of memories whose own is `"auto"`.

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
    token = _default.set(check_implementation(name))
    try:
        yield
    finally:
        _default.reset(token)


def fastest_by_default() -> contextlib.AbstractContextManager[None]:
    """Like `use_implementation("fastest")`, but an enclosing choice wins."""
    name = _default.get()
    return use_implementation("fastest" if name == "auto" else name)


def check_implementation(name: str) -> str:
    """Returns the name of an implementation.

    Raises:
        ValueError: there is no such implementation.
    """
    if name not in IMPLEMENTATIONS:
        raise ValueError(
            "`implementation` must be one of "
            f"{', '.join(map(repr, IMPLEMENTATIONS))}. "
            f"Received: implementation={name!r}."
        )
    return name


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


def use_cpu_kernels(implementation: str) -> bool:
    """Whether to use the CPU kernels rather than TensorFlow's operations.

    The CPU kernels are made of XLA kernels and products with sparse matrices
    (benchmarks/README.md has the figures). GPUs use TensorFlow's own
    operations: nothing else was measured there. So does eager code, since XLA
    would compile again for every number of tokens. So do graphs that are traced
    while `tf.debugging` checks numbers or dumps tensors: what it adds to each
    operation, XLA does not have.

    Args:
        implementation: The result of `choose_implementation`.
    """
    if implementation == "portable" or current_read() is not None:
        return False
    if tf.executing_eagerly() or op_callbacks.should_invoke_op_callbacks():
        return False
    return not has_gpu()


def has_gpu() -> bool:
    """Whether TensorFlow may place operations on a GPU."""
    return bool(tf.config.get_visible_devices("GPU"))
