"""Safetensors files: named arrays with metadata."""

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_pkm.files.whole_files import replacing_file


def write_safetensors(
    path: pathlib.Path,
    arrays: Mapping[str, np.ndarray],
    facts: Mapping[str, str],
) -> None:
    """Writes arrays to a `.safetensors` file, whole or not at all.

    Args:
        path: The file.
        arrays: The arrays by their names.
        facts: The file's metadata.
    """
    numpy_files, _ = _import()
    whole = {name: np.ascontiguousarray(each) for name, each in arrays.items()}
    with replacing_file(path) as partial:
        # Not by `save_file`, whose files only the owner can read.
        partial.write_bytes(numpy_files.save(whole, dict(facts)))


def read_safetensors(
    path: pathlib.Path,
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Returns the arrays and the metadata of a `.safetensors` file.

    Raises:
        ValueError: it cannot be read, or is no such file.
    """
    _, safetensors = _import()
    try:
        with safetensors.safe_open(path, "np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}
            return arrays, file.metadata() or {}
    except (OSError, safetensors.SafetensorError) as error:
        raise ValueError(
            f"'{path}' must be a file that `safetensors` wrote, but cannot be "
            f"read ({error}): put back a copy of it"
        ) from error


def _import() -> tuple[Any, Any]:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            "Patches of memories need the package `safetensors`. Install it "
            "with `pip install safetensors`."
        ) from error
    return safetensors.numpy, safetensors
