"""JSON files of runs and presets."""

import json
import pathlib
from typing import Any

from keras_pkm.runs.checksums import check_unchanged
from keras_pkm.runs.json_objects import load_json_object
from keras_pkm.runs.user_error import UserError
from keras_pkm.runs.whole_files import write_whole


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes a JSON file, whole or not at all."""
    write_whole(path, json.dumps(content, indent=2) + "\n")


def read_json(
    path: pathlib.Path, flag: str = "--model", default: Any = None
) -> Any:
    """Reads a JSON file.

    Args:
        path: The file.
        flag: The flag that named it, for the error.
        default: The result if the file is missing. Defaults to `None`: the
            file must exist.

    Raises:
        UserError: it is missing and has no default, was changed since it was
            written, or is not a JSON object.
    """
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
