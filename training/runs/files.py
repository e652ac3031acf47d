"""Files of runs: JSON, text, and whether they are as they were written."""

import json
import pathlib
from typing import Any

from keras_pkm.files.checksums import compare_with_checksums
from keras_pkm.files.json_objects import load_json_object
from keras_pkm.files.whole_files import write_whole
from training.runs.user_error import UserError


def check_unchanged(path: pathlib.Path, flag: str) -> None:
    """Checks a file or a directory against its checksums, if there are any."""
    checksums, change = compare_with_checksums(path)
    if change:
        raise UserError(
            f"{flag} must be as it was written, but in '{checksums.parent}' "
            f"{change}: put back a copy of it; or, if the change is wanted, "
            f"remove '{checksums}'"
        )


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes a JSON file, whole or not at all."""
    write_whole(path, json.dumps(content, indent=2) + "\n")


def read_json(
    path: pathlib.Path, flag: str = "--model", default: Any = None
) -> Any:
    """Reads a JSON object, or returns the default if there is no file."""
    if default is not None and not path.exists():
        return default
    check_unchanged(path, flag)
    try:
        return load_json_object(path)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{flag} must have a {path.name} that is a JSON object, but "
            f"'{path}' is not ({error}): put back a copy of it"
        ) from error


def read_text(path: pathlib.Path, flag: str, default: str = "") -> str:
    """Reads a text file, or returns the default if there is none."""
    check_unchanged(path, flag)
    if not path.exists():
        return default
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{flag} must have a {path.name} that is UTF-8 text, but '{path}' "
            f"is not ({error}): put back a copy of it, or remove it"
        ) from error
