"""Checks the values of arguments.

Numbers may come from numpy, too, as scalars or arrays without axes. What is
returned is a number of Python, which JSON accepts.
"""

import math
import numbers
from collections.abc import Collection
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_pkm.ops.tensors import Tensor


def plain(value: Any) -> Any:
    """Returns a number of numpy as one of Python, anything else as it is."""
    if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0:
        return value.item()
    return value


def plain_values(arguments: dict[str, Any] | None) -> dict[str, Any]:
    """Returns a copy of arguments, or of none, with numbers of Python."""
    return {name: plain(value) for name, value in (arguments or {}).items()}


def integer(name: str, value: Any, least: int) -> int:
    """Returns the value of an argument that must be an integer.

    Args:
        name: The argument.
        value: The value that was passed.
        least: The smallest value that is allowed.

    Raises:
        ValueError: it is not, or is less than `least`.
    """
    number = plain(value)
    # Also false for NaN and infinity.
    if not (
        _is_real(number) and least <= number < math.inf and number % 1 == 0
    ):
        rule = {
            0: "an integer of at least 0",
            1: "a positive integer",
        }.get(least, f"an integer of at least {least}")
        raise ValueError(
            f"`{name}` must be {rule}. Received: {name}={value!r}."
        )
    return int(number)


def positive_int(name: str, value: Any) -> int:
    """Returns the value of an argument that must be a positive integer.

    Raises:
        ValueError: it is not.
    """
    return integer(name, value, least=1)


def positive_ints(name: str, values: Any) -> list[int]:
    """Returns the values of an argument that must be positive integers.

    Raises:
        ValueError: it is not iterable, or one of them is not.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(
            f"`{name}` must be a list of positive integers. Received: "
            f"{name}={values!r}."
        )
    return [positive_int(name, value) for value in values]


def boolean(name: str, value: Any) -> bool:
    """Returns the value of an argument that must be true or false.

    Raises:
        ValueError: it is something else, such as a string.
    """
    if plain(value) not in (True, False):
        raise ValueError(
            f"`{name}` must be True or False. Received: {name}={value!r}."
        )
    return bool(plain(value))


def positive_int_or_none(name: str, value: Any) -> int | None:
    """Like `positive_int`, for an argument that may be `None`."""
    return None if value is None else positive_int(name, value)


def fraction(name: str, value: Any) -> float:
    """Returns the value of an argument that must be at least 0 and below 1.

    Raises:
        ValueError: it is not.
    """
    number = plain(value)
    if not (_is_real(number) and 0 <= number < 1):
        raise ValueError(
            f"`{name}` must be in [0, 1). Received: {name}={value!r}."
        )
    return float(number)


def finite(name: str, value: Any, least: float = -math.inf) -> float:
    """Returns the value of an argument that must be a finite number.

    Args:
        name: The argument.
        value: The value that was passed.
        least: The smallest value that is allowed.

    Raises:
        ValueError: it is not, or is less than `least`.
    """
    number = plain(value)
    if not (_is_real(number) and math.isfinite(number) and number >= least):
        rule = "" if least == -math.inf else f" of at least {least:g}"
        raise ValueError(
            f"`{name}` must be a finite number{rule}. "
            f"Received: {name}={value!r}."
        )
    return float(number)


def finite_or_none(
    name: str, value: Any, least: float = -math.inf
) -> float | None:
    """Like `finite`, for an argument that may be `None`."""
    return None if value is None else finite(name, value, least)


def one_of(name: str, value: Any, options: tuple[str, ...]) -> str:
    """Returns the value of an argument that must be one of some strings.

    Raises:
        ValueError: it is none of them.
    """
    if value not in options:
        listed = " or ".join(f'"{option}"' for option in options)
        raise ValueError(
            f"`{name}` must be {listed}. Received: {name}={value!r}."
        )
    return str(value)


def may_be_mask_of(inputs: Tensor, mask: Tensor) -> bool:
    """Whether a mask has the shape of the inputs, but for the last dimension.

    A size that is not known fits any other.
    """
    sizes = tuple(mask.shape), tuple(inputs.shape[:-1])
    return len(sizes[0]) == len(sizes[1]) and all(
        None in pair or pair[0] == pair[1] for pair in zip(*sizes)
    )


def check_activity_regularizer(
    layer: Any, training: bool | None, return_memory_access: bool
) -> None:
    """Checks that training a layer does not regularize its memory access.

    Keras regularizes all that a layer returns.
    """
    has_one = layer.activity_regularizer is not None
    if has_one and training and return_memory_access:
        raise ValueError(
            "`activity_regularizer` must be None in training where a layer "
            "returns its memory access, as in all models of this package, "
            "because Keras would regularize the numbers of slots. Received: "
            f"{layer.activity_regularizer!r} of the layer '{layer.name}'. "
            "Leave it out, or set `layer.activity_regularizer = None`."
        )


def check_mask(inputs: Tensor, mask: Tensor | None) -> None:
    """Checks that a mask, if there is one, has the shape of the inputs."""
    if mask is not None and not hasattr(mask, "shape"):
        raise ValueError(
            f"`mask` must be a tensor or an array. Received: mask={mask!r}."
        )
    if mask is not None and not may_be_mask_of(inputs, mask):
        raise ValueError(
            "`mask` must have the shape of `inputs` without the last "
            f"dimension, {tuple(inputs.shape[:-1])}. Received: mask of shape "
            f"{tuple(mask.shape)}."
        )


def only_known(given: Iterable[str], known: Collection[str]) -> None:
    """Checks the names of keyword arguments, which Keras would drop.

    Raises:
        ValueError: one is not known.
    """
    for name in given:
        if name not in known:
            raise ValueError(
                f"`{name}` is not an argument: `kwargs` must be "
                f"{', '.join(f'`{each}`' for each in sorted(known))}. "
                f"Received: `{name}`."
            )


def _is_real(number: Any) -> bool:
    return isinstance(number, numbers.Real) and not isinstance(number, bool)
