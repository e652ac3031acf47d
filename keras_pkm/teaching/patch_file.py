"""The file of a patch: rows before and after, bit for bit."""

import hashlib
import json
import pathlib
from collections.abc import Mapping

import numpy as np

from keras_pkm.files.safetensors_files import read_safetensors
from keras_pkm.files.safetensors_files import write_safetensors
from keras_pkm.teaching.row_changes import RowChanges

# The first one stored rows that are alike several times.
_FORMATS = ("keras_pkm memory patch 1", "keras_pkm memory patch 2")
_ROWS = ("old", "new")
_TAGS = ("old_tags", "new_tags")


def write_patch(
    path: pathlib.Path,
    memories: Mapping[int, RowChanges],
    num_slots: Mapping[int, int],
    other_weights: str,
) -> None:
    """Writes a patch, whole or not at all.

    Args:
        path: The file.
        memories: The changes of each memory.
        num_slots: The number of slots of each memory.
        other_weights: The fingerprint of all other weights.
    """
    arrays: dict[str, np.ndarray] = {}
    for number, changes in memories.items():
        arrays[f"{number}.slots"] = changes.slots
        for part in _ROWS:
            arrays |= _pack(f"{number}.{part}", getattr(changes, part))
        for part in _TAGS:
            if getattr(changes, part) is not None:
                arrays[f"{number}.{part}"] = getattr(changes, part)
    facts = {
        "format": _FORMATS[-1],
        "num_slots": json.dumps(dict(num_slots)),
        "other_weights": other_weights,
        "sha256": _digest(arrays),
    }
    write_safetensors(path, arrays, facts)


def read_patch(
    path: pathlib.Path,
) -> tuple[dict[int, RowChanges], dict[int, int], str]:
    """Returns the changes, slots and fingerprint that `write_patch` wrote.

    Raises:
        ValueError: the file cannot be read, is damaged, or is not a patch.
    """
    arrays, facts = read_safetensors(path)
    if facts.get("format") not in _FORMATS:
        raise ValueError(
            f"'{path}' must be a file of `MemoryPatch.save`, whose format is "
            f"'{_FORMATS[-1]}'. Received: '{facts.get('format')}'."
        )
    try:
        num_slots = {
            int(number): int(count)
            for number, count in json.loads(facts["num_slots"]).items()
        }
        memories = _read_changes(arrays, num_slots)
        other_weights = facts["other_weights"]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"'{path}' must contain a whole patch, but contradicts itself "
            f"({error}): put back a copy of it"
        ) from error
    if facts.get("sha256") != _digest(arrays):
        raise ValueError(
            f"'{path}' must be as it was written, but is damaged: its rows "
            "have changed since. Put back a copy of it"
        )
    return memories, num_slots, other_weights


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Returns the SHA-256 of the names and the bytes of all arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _pack(name: str, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Returns rows as arrays to store, smaller where no bit is lost."""
    bits = np.ascontiguousarray(rows).view("uint32")
    if not bits.any():
        return {f"{name}_zeros": np.array(rows.shape, "int64")}
    # A fact has the same row for each tokenization of its subject.
    numbers: dict[bytes, int] = {}
    index = [numbers.setdefault(row.tobytes(), len(numbers)) for row in bits]
    if len(numbers) < len(rows):
        _, first = np.unique(index, return_index=True)
        packed = _pack(name, rows[first])
        return {f"{name}_index": np.array(index, "int32"), **packed}
    if not (bits & 0xFFFF).any():
        return {f"{name}_bfloat16": (bits >> 16).astype("uint16")}
    return {name: rows}


def _unpack(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Returns the rows that `_pack` made arrays of."""
    if f"{name}_zeros" in arrays:
        rows, width = arrays[f"{name}_zeros"].tolist()
        return np.zeros((rows, width), "float32")
    if f"{name}_index" in arrays:
        others = {k: v for k, v in arrays.items() if k != f"{name}_index"}
        return _unpack(name, others)[arrays[f"{name}_index"]]
    if f"{name}_bfloat16" in arrays:
        bits = arrays[f"{name}_bfloat16"].astype("uint32") << 16
        return bits.view("float32")
    return arrays[name]


def _read_changes(
    arrays: dict[str, np.ndarray], num_slots: dict[int, int]
) -> dict[int, RowChanges]:
    memories = {}
    for number in sorted({int(name.split(".")[0]) for name in arrays}):
        slots = arrays[f"{number}.slots"]
        old, new = (_unpack(f"{number}.{part}", arrays) for part in _ROWS)
        tags = [arrays.get(f"{number}.{part}") for part in _TAGS]
        is_whole = (
            slots.dtype == "int64"
            and old.dtype == new.dtype == "float32"
            and old.shape == new.shape == (*slots.shape, old.shape[-1])
            and slots.ndim == 1
            and (np.diff(slots, prepend=-1) > 0).all()
            and (slots < num_slots[number]).all()
            and (tags[0] is None) == (tags[1] is None)
            and all(
                each is None
                or (each.dtype == "int32" and each.shape == slots.shape)
                for each in tags
            )
        )
        if not is_whole:
            raise ValueError(f"the rows of memory {number}")
        memories[number] = RowChanges(slots, old, new, *tags)
    return memories
