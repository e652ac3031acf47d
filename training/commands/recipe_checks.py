"""Checks of the numbers that flags give."""

from typing import Any

from keras_pkm.runs.user_error import UserError


def check_at_least(recipe: Any, **lowest: float) -> None:
    """Checks that fields of a recipe are at least so large, or `None`.

    Raises:
        UserError: one of them is smaller.
    """
    for name, low in lowest.items():
        value = getattr(recipe, name)
        if value is not None and value < low:
            raise out_of_range(recipe, name, f"at least {low}")


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
