"""Files of named arrays."""

import pathlib
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_pkm.files.whole_files import replacing_file


def write_arrays(path: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays to an `.npz` file, whole or not at all."""
    # Typed `Any`, because numpy's function has other keyword arguments, too.
    named: dict[str, Any] = dict(arrays)
    with replacing_file(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, **named)


def read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Returns the arrays of an `.npz` file.

    Raises:
        ValueError: it cannot be read, or is no such file.
    """
    try:
        with np.load(path) as file:
            return {name: file[name] for name in file.files}
    # The kind of error depends on where the file is damaged.
    except (
        AttributeError,
        EOFError,
        KeyError,
        NotImplementedError,
        OSError,
        RuntimeError,
        SyntaxError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ValueError(
            f"'{path}' must contain arrays, as numpy writes them, but cannot "
            f"be read ({error}): put back a copy of it, or remove it"
        ) from error
