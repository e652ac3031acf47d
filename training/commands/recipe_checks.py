"""Checks the numbers that flags set."""

import dataclasses
from typing import Any

import numpy as np

from training.runs.user_error import UserError

# The range of numpy's seeds, and so of `keras.utils.set_random_seed`.
_SEEDS = 2**32
# The largest integer for TensorFlow's int32.
_LARGEST_INT = 2**31 - 1
_LARGEST_FLOAT = float(np.finfo("float32").max)


def check_numbers(recipe: Any, **lowest: float) -> None:
    """Checks that all numbers are finite, and that some are not too small."""
    for field in dataclasses.fields(recipe):
        value = getattr(recipe, field.name)
        if field.name == "seed":
            if not 0 <= value < _SEEDS:
                raise out_of_range(recipe, "seed", f"from 0 to {_SEEDS - 1}")
        elif isinstance(value, float) and not abs(value) <= _LARGEST_FLOAT:
            raise out_of_range(recipe, field.name, "a finite number")
        elif isinstance(value, int) and value > _LARGEST_INT:
            raise out_of_range(recipe, field.name, f"at most {_LARGEST_INT}")
    for name, low in lowest.items():
        value = getattr(recipe, name)
        if value is not None and value < low:
            raise out_of_range(recipe, name, f"at least {low}")


def check_above_0(recipe: Any, *names: str) -> None:
    """Checks that fields of a recipe are above 0, or `None`."""
    for name in names:
        value = getattr(recipe, name)
        if value is not None and not value > 0:
            raise out_of_range(recipe, name, "above 0")


def check_from_0_to_1(recipe: Any, *names: str) -> None:
    """Checks that fields of a recipe are at least 0 and below 1."""
    for name in names:
        if not 0 <= getattr(recipe, name) < 1:
            raise out_of_range(recipe, name, "at least 0 and below 1")


def check_between_0_and_1(recipe: Any, *names: str) -> None:
    """Checks that fields of a recipe are above 0 and below 1, or `None`."""
    for name in names:
        value = getattr(recipe, name)
        if value is not None and not 0 < value < 1:
            raise out_of_range(recipe, name, "above 0 and below 1")


def out_of_range(recipe: Any, name: str, rule: str) -> UserError:
    """Returns the error for a field of a recipe that breaks a rule."""
    flag = f"--{name.replace('_', '-')}"
    return UserError(f"{flag} must be {rule}, received {getattr(recipe, name)}")
