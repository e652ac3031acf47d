"""Types of recipes' fields: a range stands on the field that it concerns."""

import dataclasses
from collections.abc import Iterable
from typing import Annotated
from typing import Any
from typing import get_type_hints

import pydantic
from pydantic import AfterValidator
from pydantic import Field

from training.runs.user_error import UserError

# The largest integer for TensorFlow's int32.
_LARGEST_INT = 2**31 - 1
# Far from the end of float32.
_FINITE: dict[str, Any] = {"lt": 1e38, "allow_inf_nan": False}


def _distinct(values: tuple) -> tuple:
    if not values or len(set(values)) < len(values):
        raise ValueError("at least one, each only once")
    return values


Whole = Annotated[int, Field(ge=0, le=_LARGEST_INT)]
Count = Annotated[int, Field(ge=1, le=_LARGEST_INT)]
Length = Annotated[int, Field(ge=8, le=_LARGEST_INT)]
# The range of numpy's seeds, and so of `keras.utils.set_random_seed`.
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Real = Annotated[float, Field(gt=-1e38, **_FINITE)]
NotNegative = Annotated[float, Field(ge=0, **_FINITE)]
Positive = Annotated[float, Field(gt=0, **_FINITE)]
# From 0, without 1.
Rate = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
# Without 0 and 1.
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
#: Why flags of masks do nothing.
NO_MASKS = "a causal model has no masks"
#: For a tuple that is not empty, and has nothing twice.
DISTINCT = AfterValidator(_distinct)
Counts = Annotated[tuple[Count, ...], DISTINCT]
NotNegatives = Annotated[tuple[NotNegative, ...], DISTINCT]
Positives = Annotated[tuple[Positive, ...], DISTINCT]

_RULES = {
    "greater_than_equal": "at least {}",
    "greater_than": "above {}",
    "less_than": "below {}",
    "less_than_equal": "at most {}",
    "finite_number": "a finite number",
}


def check_fields(recipe: Any) -> None:
    """Checks that each field of a recipe has a value of its type."""
    hints = get_type_hints(type(recipe), include_extras=True)
    for field in dataclasses.fields(recipe):
        value = getattr(recipe, field.name)
        try:
            pydantic.TypeAdapter(hints[field.name]).validate_python(value)
        except pydantic.ValidationError as error:
            raise out_of_range(recipe, field.name, _rule(error)) from error


def _rule(error: pydantic.ValidationError) -> str:
    found = error.errors()[0]
    if found["type"] in _RULES:
        limits = [f"{each:.15g}" for each in found.get("ctx", {}).values()]
        return _RULES[found["type"]].format(*limits)
    said = found["msg"].removeprefix("Value error, ")
    return said.removeprefix("Input should be ")


def out_of_range(recipe: Any, name: str, rule: str) -> UserError:
    """Returns the error for a field of a recipe that breaks a rule."""
    flag = f"--{name.replace('_', '-')}"
    return UserError(f"{flag} must be {rule}, received {getattr(recipe, name)}")


def check_data_dir(recipe: Any, *sources: str | None) -> None:
    """Checks that --data-dir is not given where no source is a tfds one."""
    if not reads_tfds(*sources):
        check_unused(recipe, ("data_dir",), "no data set of tfds is read")


def reads_tfds(*sources: str | None) -> bool:
    """Whether a source is TensorFlow Datasets, or a data set of it."""
    return any(source and source.startswith("tfds") for source in sources)


def check_unused(
    recipe: Any, names: Iterable[str], reason: str, default: Any = None
) -> None:
    """Checks that flags are not given which would do nothing."""
    for name in names:
        if getattr(recipe, name) != getattr(default or type(recipe), name):
            raise UserError(
                f"--{name.replace('_', '-')} would do nothing: {reason}. Leave "
                "it out"
            )
