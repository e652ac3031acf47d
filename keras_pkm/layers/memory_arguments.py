"""Checks of the arguments of a product-key memory."""

import numbers
from typing import Any


def positive_int(name: str, value: int) -> int:
    """Returns the value of an argument that must be a positive integer.

    Raises:
        ValueError: it is none.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    # Also false for NaN and infinity.
    if not (is_number and 1 <= value < float("inf") and value % 1 == 0):
        raise ValueError(
            f"`{name}` must be a positive integer. Received: {name}={value!r}."
        )
    return int(value)


def positive_int_or_none(name: str, value: int | None) -> int | None:
    """As `positive_int`, of an argument that may be `None`."""
    return None if value is None else positive_int(name, value)


def dropout_rate(name: str, value: float) -> float:
    """Returns the value of an argument that must be at least 0 and below 1.

    Raises:
        ValueError: it is not.
    """
    if not (isinstance(value, numbers.Real) and 0 <= value < 1):
        raise ValueError(
            f"`{name}` must be in [0, 1). Received: {name}={value!r}."
        )
    return float(value)


def check_memory_sizes(memory: Any) -> None:
    """Checks that the sizes of a memory fit each other.

    Args:
        memory: has `num_sub_keys`, `top_k` and `key_dim`.

    Raises:
        ValueError: they do not.
    """
    if memory.num_sub_keys**2 >= 2**31:
        raise ValueError(
            "`num_sub_keys` must be at most 46,340, because slots are "
            f"int32 numbers. Received: num_sub_keys={memory.num_sub_keys}."
        )
    if memory.top_k > memory.num_sub_keys:
        raise ValueError(
            "`top_k` must be at most `num_sub_keys`, because each half of "
            "a query has no more sub-keys to choose from. Received: "
            f"top_k={memory.top_k}, num_sub_keys={memory.num_sub_keys}."
        )
    if memory.key_dim % 2:
        raise ValueError(
            "`key_dim` must be even, because each half of a query has its "
            f"own sub-keys. Received: key_dim={memory.key_dim}."
        )


def known_width(inputs_shape: tuple[int | None, ...]) -> int:
    """Returns the last dimension of the inputs' shape.

    Raises:
        ValueError: it is not known.
    """
    width = inputs_shape[-1]
    if width is None:
        raise ValueError(
            "The last dimension of the inputs of `ProductKeyMemory` must be "
            f"known. Received: inputs_shape={inputs_shape}."
        )
    return width
