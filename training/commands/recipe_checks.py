"""Checks of the numbers that flags give."""

import dataclasses
from typing import Any

import numpy as np

from keras_pkm.runs.user_error import UserError

# What numpy, and therefore `keras.utils.set_random_seed`, takes.
_SEEDS = 2**32
# What TensorFlow computes with.
_LARGEST_INT = 2**31 - 1
_LARGEST_FLOAT = float(np.finfo("float32").max)


def check_numbers(recipe: Any, **lowest: float) -> None:
    """Checks that all numbers can be computed with, and some are not small.

    Args:
        recipe: A dataclass.
        **lowest: For fields of the recipe, the least that they may be. Those
            that are `None` are not checked.

    Raises:
        UserError: a number is out of range.
    """
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
    """Checks that fields of a recipe are above 0, or `None`.

    Raises:
        UserError: one of them is not.
    """
    for name in names:
        value = getattr(recipe, name)
        if value is not None and not value > 0:
            raise out_of_range(recipe, name, "above 0")


def check_from_0_to_1(recipe: Any, *names: str) -> None:
    """Checks that fields of a recipe are at least 0 and below 1.

    Raises:
        UserError: one of them is not.
    """
    for name in names:
        if not 0 <= getattr(recipe, name) < 1:
            raise out_of_range(recipe, name, "at least 0 and below 1")


def check_between_0_and_1(recipe: Any, *names: str) -> None:
    """Checks that fields of a recipe are above 0 and below 1, or `None`.

    Raises:
        UserError: one of them is not.
    """
    for name in names:
        value = getattr(recipe, name)
        if value is not None and not 0 < value < 1:
            raise out_of_range(recipe, name, "above 0 and below 1")


def out_of_range(recipe: Any, name: str, rule: str) -> UserError:
    """The error that a field of a recipe breaks a rule."""
    flag = f"--{name.replace('_', '-')}"
    return UserError(f"{flag} must be {rule}, received {getattr(recipe, name)}")
