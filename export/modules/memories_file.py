"""The file about an exported model's memories, which patches need."""

import pathlib

from export.graph.encoder import Encoder
from export.trained.trained_model import TrainedModel
from keras_pkm.files.json_objects import load_json_object
from keras_pkm.teaching.memory_patch import fingerprint
from training.runs.files import write_json
from training.runs.user_error import UserError

_NAME = "memories.json"


def write_memories(
    directory: pathlib.Path, model: TrainedModel, encoder: Encoder
) -> None:
    """Writes the trained model's fingerprint, and whether tables are whole."""
    tables = encoder.tables
    content = {
        "num_slots": {n: table.num_slots for n, table in tables.items()},
        "other_weights": fingerprint(model.task or model.backbone),
        "is_whole": all(table.is_whole for table in tables.values()),
    }
    write_json(directory / _NAME, content)


def read_memories(directory: pathlib.Path) -> tuple[dict[int, int], str]:
    """Returns the slots of an exported model's memories and its fingerprint."""
    if not (directory / "saved_model.pb").exists():
        raise UserError(
            "--model must be the directory of an exported model, but "
            f"'{directory}' has no saved_model.pb: pass one that "
            "export/saved_model.py wrote"
        )
    try:
        content = load_json_object(directory / _NAME)
        slots = {int(n): int(s) for n, s in content["num_slots"].items()}
        is_whole, weights = content["is_whole"], str(content["other_weights"])
    except (OSError, AttributeError, KeyError, ValueError) as error:
        raise UserError(
            f"--model must be an exported model with a memory, but "
            f"'{directory}' has no {_NAME} that says so: export it again, or "
            "pass another"
        ) from error
    if not is_whole:
        raise UserError(
            "--model must have all rows of its memories as they were trained, "
            f"but those of '{directory}' were pruned or stored in fewer bits: "
            "export it again with --values-dtype float32 and without "
            "--prune-unused; or patch the run by training/teach.py --apply, "
            "and export that"
        )
    return slots, weights
