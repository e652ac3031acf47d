"""Applies a patch to a copy of an exported model, or reverts it."""

import dataclasses
import pathlib
import shutil
from typing import Any
from typing import Literal

import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from export.modules.memories_file import read_memories
from keras_pkm.files.checksums import seal_directory
from keras_pkm.files.whole_files import new_directory
from keras_pkm.teaching.memory_patch import MemoryPatch
from training.runs.files import check_unchanged
from training.runs.outputs import check_output_directory
from training.runs.outputs import writing_results
from training.runs.user_error import UserError

_VARIABLES = "variables"
# This file has a hash of the variables; no loader needs it.
_HASHES = "fingerprint.pb"
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


@dataclasses.dataclass(frozen=True)
class PatchRecipe:
    """Apply a patch to an exported model, or undo it.

    $ python export/patch.py --model served --apply P.safetensors --out newer
    $ python export/patch.py --model newer --revert P.safetensors --out older

    Writes a patched copy of the exported model, in which only rows of its
    memories differ.

    --verbose also shows the messages of TensorFlow.
    """

    # The directory of a model that export/saved_model.py wrote.
    model: pathlib.Path
    # Directory to write; new or empty.
    out: pathlib.Path
    # The patch to apply: a file that training/teach.py wrote.
    apply: pathlib.Path | None = None
    # The patch to undo.
    revert: pathlib.Path | None = None


def patch_module(recipe: PatchRecipe) -> str:
    """Writes a patched copy, and returns a description of the change."""
    given = [path for path in (recipe.apply, recipe.revert) if path is not None]
    if len(given) != 1:
        raise UserError(
            "one of --apply and --revert must be given, received "
            f"{'none' if recipe.apply is None else 'both'}"
        )
    check_output_directory(recipe.out, "--out")
    num_slots, other_weights = read_memories(recipe.model)
    check_unchanged(recipe.model, "--model")
    done: Literal["applied", "reverted"] = (
        "reverted" if recipe.apply is None else "applied"
    )
    flag = "--revert" if recipe.apply is None else "--apply"
    try:
        patch = MemoryPatch.load(given[0])
        patch.check_model(num_slots, other_weights)
        tensors = _read_tensors(recipe.model / _VARIABLES / _VARIABLES)
        values = _variable_names(tensors, "memory_values")
        tags = _variable_names(tensors, "memory_tags")
        for number, changes in patch.changes(done).items():
            table = tensors[values[number]]
            own_tags = tensors[tags[number]] if number in tags else None
            changes.check(
                table[changes.slots],
                number,
                done,
                None if own_tags is None else own_tags[changes.slots],
            )
            table[changes.slots] = changes.new
            if own_tags is not None and changes.new_tags is not None:
                own_tags[changes.slots] = changes.new_tags
    except ValueError as error:
        raise UserError(f"{flag}: {error}") from error
    with writing_results(recipe.out), new_directory(recipe.out) as partial:
        _copy(recipe.model, partial)
        _write_tensors(partial / _VARIABLES / _VARIABLES, tensors)
        seal_directory(partial)
    return f"{recipe.out}: {patch.num_rows:,} rows were {done}."


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    for path in source.iterdir():
        if path.is_dir() and path.name != _VARIABLES:
            shutil.copytree(path, target / path.name)
        elif path.is_file() and path.name != _HASHES:
            shutil.copyfile(path, target / path.name)


def _read_tensors(prefix: pathlib.Path) -> dict[str, Any]:
    reader = tf.train.load_checkpoint(str(prefix))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
    }


def _variable_names(tensors: dict[str, Any], attribute: str) -> dict[int, str]:
    """The names in a checkpoint of variables of tables, by their layers."""
    graph = trackable_object_graph_pb2.TrackableObjectGraph()
    graph.ParseFromString(tensors[_GRAPH])

    def children(node: Any) -> dict[str, Any]:
        return {
            child.local_name: graph.nodes[child.node_id]
            for child in node.children
        }

    attributes = children(graph.nodes[0])
    if attribute not in attributes:
        return {}
    tables = children(attributes[attribute])
    return {
        int(number): node.attributes[0].checkpoint_key
        for number, node in tables.items()
    }


def _write_tensors(prefix: pathlib.Path, tensors: dict[str, Any]) -> None:
    prefix.parent.mkdir()
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.convert_to_tensor(each) for each in tensors.values()],
    )
