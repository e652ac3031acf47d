"""Invented facts, and questions whose answers must remain as they were."""

import functools
import pathlib
import tomllib
from typing import Any


@functools.cache
def invented() -> dict[str, Any]:
    """Returns the content of `invented.toml`."""
    path = pathlib.Path(__file__).with_suffix(".toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))
