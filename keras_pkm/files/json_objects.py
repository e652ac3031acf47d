"""JSON files, whoever wrote them."""

import json
import pathlib
from typing import Any


def load_json_object(path: pathlib.Path) -> dict[str, Any]:
    """Returns the JSON object that a file contains.

    Raises:
        OSError: the file cannot be read.
        ValueError: it contains no JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(str(error)) from error
    if not isinstance(content, dict):
        raise ValueError(f"it contains a {type(content).__name__}")
    return content
