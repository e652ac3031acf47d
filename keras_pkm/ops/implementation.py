"""Which of two implementations of the same computation is used."""

import contextlib
import contextvars
from collections.abc import Iterator

import tensorflow as tf

from keras_pkm.ops.portable_reads import current_read

IMPLEMENTATIONS = ("auto", "fastest", "portable")
_default: contextvars.ContextVar[str] = contextvars.ContextVar(
    "implementation", default="auto"
)


@contextlib.contextmanager
def use_implementation(name: str) -> Iterator[None]:
    """Sets the implementation of all memories that have none of their own.

    It acts on what is computed, and on graphs that are traced, within it.

    Args:
        name: `"fastest"`, `"portable"` or `"auto"`, which mean what they mean
            as the argument `implementation` of
            `keras_pkm.layers.ProductKeyMemory`.

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
    """As `use_implementation("fastest")`, unless within another one."""
    name = _default.get()
    return use_implementation("fastest" if name == "auto" else name)


def check_implementation(name: str) -> str:
    """Returns the name of an implementation, if it is one."""
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
        name: An implementation; `"auto"` stands for that of the innermost
            `use_implementation`.
        training: optional bool. Graphs for training are not exported, so that
            `"auto"` means the fastest implementation there, and the portable
            one elsewhere.
    """
    if name == "auto":
        name = _default.get()
    if name == "auto":
        name = "fastest" if training else "portable"
    return name


def use_cpu_kernels(implementation: str) -> bool:
    """Says whether to compute with the kernels that are fastest on CPUs.

    Those are kernels of XLA and products with sparse matrices
    (benchmarks/README.md has the figures). Nothing was measured on GPUs, which
    get TensorFlow's own operations. Eager code gets them, too: XLA would
    compile anew for every number of tokens.

    Args:
        implementation: What `choose_implementation` returned.
    """
    if implementation == "portable" or current_read() is not None:
        return False
    return not tf.executing_eagerly() and not has_gpu()


def has_gpu() -> bool:
    """Whether TensorFlow may place operations on a GPU."""
    return bool(tf.config.get_visible_devices("GPU"))
