"""Checks the values of arguments."""

import math
import numbers
from typing import Any


def positive_int(name: str, value: int) -> int:
    """Returns the value of an argument that must be a positive integer.

    Raises:
        ValueError: it is not.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    # Also false for NaN and infinity.
    if not (is_number and 1 <= value < float("inf") and value % 1 == 0):
        raise ValueError(
            f"`{name}` must be a positive integer. Received: {name}={value!r}."
        )
    return int(value)


def positive_int_or_none(name: str, value: int | None) -> int | None:
    """Like `positive_int`, for an argument that may be `None`."""
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


def finite(name: str, value: Any, least: float = -math.inf) -> float:
    """Returns the value of an argument that must be a finite number.

    Args:
        name: The argument.
        value: The value that was passed.
        least: The smallest value that is allowed.

    Raises:
        ValueError: it is not, or is less than `least`.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and value >= least):
        rule = "" if least == -math.inf else f" of at least {least:g}"
        raise ValueError(
            f"`{name}` must be a finite number{rule}. "
            f"Received: {name}={value!r}."
        )
    return float(value)


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
