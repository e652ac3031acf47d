"""Applies a patch to a copy of an exported model, or reverts it."""

import os
import pathlib
import shutil
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from keras_pkm.export.arguments import ArgumentError
from keras_pkm.export.arguments import check_new_directory
from keras_pkm.export.arguments import check_unchanged
from keras_pkm.export.memories_file import read_memories
from keras_pkm.export.model_card import CARD
from keras_pkm.files.checksums import seal_directory
from keras_pkm.files.whole_files import new_directory
from keras_pkm.layers.fact_memory import check_keys
from keras_pkm.teaching.memory_patch import Done
from keras_pkm.teaching.memory_patch import MemoryPatch

_VARIABLES = "variables"
# This file has a hash of the variables; no loader needs it.
_HASHES = "fingerprint.pb"
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def patch(
    model: str | os.PathLike[str],
    patch: MemoryPatch | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    revert: bool = False,
) -> int:
    """Writes a copy of an exported model with a patch applied or reverted.

    Only rows of the model's memories differ. The copy is written whole or not
    at all.

    Args:
        model: The directory of a model that `saved_model` wrote, with all rows
            of its memories in float32.
        patch: A `keras_pkm.teaching.MemoryPatch` of the model that was
            exported, or the path of its file, which needs the package
            `safetensors`.
        path: The directory to write; new or empty.
        revert: Whether to revert the patch.

    Returns:
        The number of rows that were changed.

    Raises:
        ValueError: The patch does not fit the model, was already applied, or
            cannot be read; or another argument is impossible.
        OSError: `path` cannot be written.
        RuntimeError: Keras uses another backend than TensorFlow.

    Example:

    >>> import tempfile
    >>> words = "[PAD] [UNK] [CLS] [SEP] [MASK] good film".split()
    >>> preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
    ...     keras_hub.models.BertTokenizer(words), sequence_length=8
    ... )
    >>> task = keras_pkm.models.add_memory(
    ...     keras_hub.models.BertTextClassifier(
    ...         keras_hub.models.BertBackbone(len(words), 2, 2, 16, 32),
    ...         num_classes=2,
    ...         preprocessor=preprocessor,
    ...     ),
    ...     (1,),
    ...     {"num_sub_keys": 16, "top_k": 4, "key_dim": 8},
    ... )
    >>> folder = tempfile.TemporaryDirectory()
    >>> served, newer = f"{folder.name}/served", f"{folder.name}/newer"
    >>> exported = keras_pkm.export.saved_model(task, served)
    >>> teacher = keras_pkm.teaching.MemoryTeacher(task, learning_rate=0.1)
    >>> film = preprocessor(["good film"])
    >>> teacher.teach([(film, np.array([1]))], steps=1)
    1
    >>> patch = teacher.make_patch()
    >>> keras_pkm.export.patch(served, patch, newer) == patch.num_rows
    True
    >>> folder.cleanup()
    """
    source, target = pathlib.Path(model), pathlib.Path(path)
    check_new_directory(target)
    exported = read_memories(source)
    check_unchanged("model", source)
    done: Done = "reverted" if revert else "applied"
    try:
        if not isinstance(patch, MemoryPatch):
            patch = MemoryPatch.load(patch)
        patch.check_model(exported.num_slots, exported.other_weights)
        tensors = _read_tensors(source / _VARIABLES / _VARIABLES)
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
                if number in exported.num_keys:
                    check_keys(own_tags, exported.num_keys[number])
    except ValueError as error:
        raise ArgumentError(f"`patch`: {error}") from error
    with new_directory(target) as partial:
        _copy(source, partial)
        _write_tensors(partial / _VARIABLES / _VARIABLES, tensors)
        seal_directory(partial, but=(CARD,))
    return patch.num_rows


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
