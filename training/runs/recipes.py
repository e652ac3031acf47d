"""Stores recipes with runs, and compares them."""

import dataclasses
import json
import pathlib
from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeVar

from training.runs.files import read_json
from training.runs.user_error import UserError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Recipe = TypeVar("Recipe", bound="DataclassInstance")

# Flags that had other names when older runs were written.
_OLD_NAMES = {"corpus": "text", "run_dir": "out"}


def recipe_as_json(recipe: Any) -> dict[str, Any]:
    """Returns the fields of a recipe as they are stored in JSON."""
    # In JSON, tuples become lists and paths become text.
    return json.loads(json.dumps(dataclasses.asdict(recipe), default=str))


def read_recipe(path: pathlib.Path, flag: str) -> dict[str, Any]:
    """Reads a stored recipe, with today's names of the flags."""
    stored = read_json(path, flag)
    data = "squad" if stored.get("task") == "squad" else "glue"
    names = {**_OLD_NAMES, "data": data}
    return {names.get(name, name): stored[name] for name in stored}


def recipe_from_json(
    stored: dict[str, Any], kind: type[Recipe], path: str, flag: str
) -> Recipe:
    """Returns a stored recipe as the dataclass that it was."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := sorted(set(stored) - set(fields)):
        raise UserError(
            f"{flag} must be what this version of keras_pkm can continue, but "
            f"the recipe of '{path}' has {', '.join(unknown)}: use the version "
            "that wrote it, or pass another directory"
        )
    return kind(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
        }
    )


def field_names(recipe: Any, but: Iterable[str] = ()) -> list[str]:
    """Returns the names of a dataclass's fields, except those in `but`."""
    left_out = set(but)
    return [
        field.name
        for field in dataclasses.fields(recipe)
        if field.name not in left_out
    ]


def recipe_differences(
    stored: dict[str, Any], recipe: Any, names: Iterable[str]
) -> list[str]:
    """Describes the fields in which a stored recipe differs from another."""
    # If an earlier version had no such flag, its run counts as the default.
    defaults = {
        field.name: field.default
        for field in dataclasses.fields(recipe)
        if field.default is not dataclasses.MISSING
    }
    defaults = json.loads(json.dumps(defaults, default=str))
    asked = recipe_as_json(recipe)
    stored = {**defaults, **stored}
    return [
        f"--{name.replace('_', '-')} was {stored.get(name)}, now {asked[name]}"
        for name in names
        if stored.get(name) != asked[name]
    ]
