"""The list of the patches that a taught model has."""

import pathlib

from keras_pkm.files.safetensors_files import read_safetensors
from keras_pkm.teaching.memory_patch import MemoryPatch


def describe_patch(
    patch: MemoryPatch, saved: pathlib.Path, name: pathlib.Path
) -> dict:
    """Returns what a list says of a patch that was saved in a file.

    A patch is known by the checksum of its rows, wherever its file is.
    """
    _, facts = read_safetensors(saved)
    return {
        "file": str(name),
        "rows": patch.num_rows,
        "bytes": saved.stat().st_size,
        "sha256": facts["sha256"],
    }


def without(patches: list[dict], reverted: dict) -> list[dict]:
    """Returns a list without a patch that was reverted."""
    for number in reversed(range(len(patches))):
        if patches[number]["sha256"] == reverted["sha256"]:
            return [*patches[:number], *patches[number + 1 :]]
    return patches
