"""Files that record how often each slot was read, one a measurement."""

import os
import pathlib
import re
from typing import TypeAlias

import numpy as np

from keras_pkm.files.array_files import read_arrays
from keras_pkm.files.array_files import write_arrays

#: Counts of each slot, by the number of the layer and by the count's name.
Counts: TypeAlias = dict[int, dict[str, np.ndarray]]
_NAME = re.compile(r"step-(\d+)\.npz")


def write_slot_counts(
    directory: str | os.PathLike[str], step: int, counts: Counts
) -> None:
    """Writes a measurement, whole or not at all.

    Args:
        directory: path. The directory is created if it is missing.
        step: int, not negative.
        counts: dict of dicts of arrays, by the number of the layer and by the
            count's name, as `keras_pkm.models.MemoryProbe.counts` returns
            them.
    """
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{number}/{name}": values
        for number, layer in counts.items()
        for name, values in layer.items()
    }
    write_arrays(directory / f"step-{step}.npz", arrays)


def read_slot_counts(directory: str | os.PathLike[str], step: int) -> Counts:
    """Returns a measurement that `write_slot_counts` wrote.

    Raises:
        ValueError: the file is damaged.
    """
    counts: Counts = {}
    arrays = read_arrays(pathlib.Path(directory) / f"step-{step}.npz")
    for key, values in arrays.items():
        number, name = key.split("/")
        counts.setdefault(int(number), {})[name] = values
    if not all("top1" in layer for layer in counts.values()):
        raise ValueError(f"'{directory}' lacks the best slots of step {step}")
    return counts


def list_slot_counts(directory: str | os.PathLike[str]) -> list[int]:
    """Returns the steps of the measurements in a directory, in order."""
    directory = pathlib.Path(directory)
    if not directory.is_dir():
        return []
    matches = (_NAME.fullmatch(path.name) for path in directory.iterdir())
    return sorted(int(match[1]) for match in matches if match)
