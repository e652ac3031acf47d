"""The file about an exported model's memories, which patches need."""

import json
import pathlib
from typing import NamedTuple

import keras

from keras_pkm.export.arguments import ArgumentError
from keras_pkm.export.encoder import Encoder
from keras_pkm.files.json_objects import load_json_object
from keras_pkm.files.whole_files import write_whole
from keras_pkm.layers.fact_memory import FactMemory
from keras_pkm.layers.memories import memories
from keras_pkm.teaching.memory_patch import fingerprint

_NAME = "memories.json"


def write_memories(
    directory: pathlib.Path, model: keras.Model, encoder: Encoder
) -> None:
    """Writes the trained model's fingerprint, and whether tables are whole."""
    tables = encoder.tables
    content = {
        "num_slots": {n: table.num_slots for n, table in tables.items()},
        # Of memories of facts, whose rows need keys.
        "num_keys": {
            number: memory.num_keys
            for number, memory in memories(model).items()
            if number in tables and isinstance(memory, FactMemory)
        },
        "other_weights": fingerprint(model),
        "is_whole": all(table.is_whole for table in tables.values()),
    }
    write_whole(directory / _NAME, json.dumps(content, indent=2) + "\n")


class ExportedMemories(NamedTuple):
    """What is known of the memories of an exported model.

    Attributes:
        num_slots: By the number of its layer, the slots of each table.
        num_keys: Likewise, the keys of each table of facts.
        other_weights: The fingerprint of all other weights.
    """

    num_slots: dict[int, int]
    num_keys: dict[int, int]
    other_weights: str


def read_memories(directory: pathlib.Path) -> ExportedMemories:
    """Reads what is known of the memories of an exported model."""
    if not (directory / "saved_model.pb").exists():
        raise ArgumentError(
            "`model` must be the directory of an exported model, but "
            f"'{directory}' has no saved_model.pb: pass one that "
            "`keras_pkm.export.saved_model` wrote"
        )
    try:
        content = load_json_object(directory / _NAME)
        slots = {int(n): int(s) for n, s in content["num_slots"].items()}
        # Exports of version 0.1.0 have none.
        keys = {int(n): int(k) for n, k in content.get("num_keys", {}).items()}
        is_whole, weights = content["is_whole"], str(content["other_weights"])
    except (OSError, AttributeError, KeyError, ValueError) as error:
        raise ArgumentError(
            "`model` must be an exported model with a memory, but "
            f"'{directory}' has no {_NAME} that says so: export it again, or "
            "pass another"
        ) from error
    if not is_whole:
        raise ArgumentError(
            "`model` must have all rows of its memories as they were trained, "
            f"but those of '{directory}' were pruned or stored in fewer bits: "
            "export it again with `values_dtype` float32 and without "
            "`prune_unused`; or patch the trained model by "
            "`MemoryPatch.apply`, and export that"
        )
    return ExportedMemories(slots, keys, weights)
