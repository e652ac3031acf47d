"""Errors of the library as errors about flags."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from keras_pkm.export.arguments import ArgumentError
from training.runs.user_error import UserError


@contextlib.contextmanager
def naming_flags(recipe: Any, **flags: str) -> Iterator[None]:
    """Puts the names of flags in place of those of arguments.

    What stands for other names in backticks is given.
    """
    known = {
        field.name: f"--{field.name.replace('_', '-')}"
        for field in dataclasses.fields(recipe)
    }
    known |= flags
    try:
        yield
    except ArgumentError as error:
        message = re.sub(
            r"`([\w.]+)`",
            lambda found: known.get(found[1], found[0]),
            str(error),
        )
        raise UserError(message) from error
