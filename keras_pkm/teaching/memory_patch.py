"""A patch of a model's memories, to apply and to revert."""

import dataclasses
import hashlib
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any
from typing import Literal
from typing import TypeAlias
from typing import cast

import keras
import numpy as np
from keras import ops

from keras_pkm.layers.memories import memories
from keras_pkm.layers.memories import tables
from keras_pkm.layers.value_table import ValueTable
from keras_pkm.ops.backend import backend
from keras_pkm.teaching.patch_file import read_patch
from keras_pkm.teaching.patch_file import write_patch
from keras_pkm.teaching.row_changes import RowChanges
from keras_pkm.teaching.row_changes import TableCopy

Done: TypeAlias = Literal["applied", "reverted"]


@dataclasses.dataclass(frozen=True)
class MemoryPatch:
    """The rows of value tables that teaching changed, before and after.

    A patch fits the model that was taught, and copies of it. It replaces rows
    only if the present rows are, bit for bit, those that it expects. So a patch
    can be applied only once, and patches that share rows must be reverted in
    reverse order. A patch of facts also expects the keys of their relations: if
    an earlier patch contains them, that patch must be applied first. If
    `tf.distribute` keeps copies of the model on several devices, rows are
    replaced on all of them.

    Attributes:
        memories: dict. The `RowChanges` of each changed table, keyed by the
            lowest number of the memories that read it, as
            `keras_pkm.models.MemoryProbe` counts them.
        num_slots: dict. The number of slots of each table, with the same keys.
        other_weights: str. The SHA-256 sum of all weights of the model except
            the value tables.

    Example:

    >>> model = keras.Sequential(
    ...     [
    ...         keras.Input((16,)),
    ...         keras_pkm.layers.ProductKeyMemory(8, top_k=4, key_dim=8),
    ...     ]
    ... )
    >>> x, y = np.random.normal(size=(2, 5, 16))
    >>> teacher = keras_pkm.teaching.MemoryTeacher(
    ...     model, loss=keras.losses.MeanSquaredError()
    ... )
    >>> teacher.teach([(x, y)], steps=1)
    1
    >>> patch = teacher.make_patch()
    >>> 0 < patch.num_rows <= 64
    True
    >>> patch.revert(model)
    >>> patch.apply(model)
    """

    memories: Mapping[int, RowChanges]
    num_slots: Mapping[int, int]
    other_weights: str

    @classmethod
    def since(
        cls, start: Mapping[int, TableCopy], model: keras.Model
    ) -> "MemoryPatch":
        """Returns what has changed in the memories of a model.

        Args:
            start: The value tables before, from `copy_tables`.
            model: The model now.
        """
        found = memories(model)
        changes = {
            number: RowChanges.between(
                start[number], now, found[number].needed_rows
            )
            for number, now in copy_tables(model).items()
        }
        return cls(
            {number: each for number, each in changes.items() if len(each)},
            count_slots(model),
            fingerprint(model),
        )

    def __repr__(self) -> str:
        numbers = ", ".join(map(str, self.memories)) or "none"
        return f"MemoryPatch({self.num_rows} rows; memories: {numbers})"

    @property
    def num_rows(self) -> int:
        """The number of rows that the patch changes, in all memories."""
        return sum(each.num_changed for each in self.memories.values())

    def apply(self, model: keras.Model) -> None:
        """Writes the rows as they were after teaching.

        Args:
            model: the model that was taught, or a copy, in its state before
                teaching.

        Raises:
            ValueError: it is another model, or its rows are not those that
                the patch expects. Nothing is changed then.
        """
        self._replace(model, "applied")

    def revert(self, model: keras.Model) -> None:
        """Writes the rows as they were before teaching.

        Args:
            model: a model to which the patch has been applied.

        Raises:
            ValueError: as for `apply`.
        """
        self._replace(model, "reverted")

    def changes(self, done: Done) -> dict[int, RowChanges]:
        """Returns the `RowChanges` of each memory, in one direction."""
        if done == "applied":
            return dict(self.memories)
        return {n: each.reversed() for n, each in self.memories.items()}

    def check_model(
        self, num_slots: Mapping[int, int], other_weights: str
    ) -> None:
        """Checks that a model is the one that was taught, or a copy of it.

        Args:
            num_slots: The number of slots of each of its memories.
            other_weights: Its `fingerprint`.

        Raises:
            ValueError: it is another model.
        """
        if dict(num_slots) != dict(self.num_slots):
            raise ValueError(
                "A patch must be for a model with the same memories. Received: "
                f"a patch for memories whose numbers and slots are "
                f"{dict(self.num_slots)}, and a model with "
                f"{dict(num_slots) or 'none'}."
            )
        if other_weights != self.other_weights:
            raise ValueError(
                "A patch must be for the model that was taught, or a copy of "
                "it. Received: a model whose other weights differ, such as "
                "one that has been trained further, or whose memories have "
                "other settings."
            )

    def _replace(self, model: keras.Model, done: Done) -> None:
        self.check_model(count_slots(model), fingerprint(model))
        changes = self.changes(done)
        found = tables(model)
        replicas = {
            number: backend.components(table.values)
            for number, table in found.items()
        }
        tags = {number: _tags(table) for number, table in found.items()}
        for number, each in changes.items():
            own_tags = tags[number]
            if own_tags is not None:
                own_tags = own_tags[each.slots]
            for values in replicas[number]:
                present = backend.read_rows(values, each.slots)
                each.check(present, number, done, own_tags)
        readers = memories(model)
        for number, each in changes.items():
            own_tags = tags[number]
            if own_tags is not None and each.new_tags is not None:
                own_tags[each.slots] = each.new_tags
                readers[number].check_tags(own_tags)
        for number, each in changes.items():
            for values in replicas[number]:
                backend.write_rows(values, each.slots, each.new)
            if tags[number] is not None:
                cast(Any, found[number].tags).assign(tags[number])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the patch to a file, bit for bit.

        It needs the package `safetensors`.

        Args:
            path: the file, `.safetensors`. An existing file is replaced.
        """
        write_patch(
            pathlib.Path(path),
            self.memories,
            self.num_slots,
            self.other_weights,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "MemoryPatch":
        """Reads a patch that `save` wrote.

        Args:
            path: the file.

        Raises:
            ValueError: the file cannot be read, is damaged, or is not a patch.
        """
        return cls(*read_patch(pathlib.Path(path)))


def copy_tables(model: keras.Model) -> dict[int, TableCopy]:
    """Returns copies of a model's value tables, by the memory's number."""
    return {
        number: TableCopy(
            np.array(ops.convert_to_numpy(table.values)), _tags(table)
        )
        for number, table in tables(model).items()
    }


def _tags(table: ValueTable) -> np.ndarray | None:
    """A copy of the tags of a table, if it has any."""
    if table.tags is None:
        return None
    return np.array(ops.convert_to_numpy(table.tags))


def count_slots(model: keras.Model) -> dict[int, int]:
    """Returns the number of slots of each table, by the memory's number."""
    return {number: table.num_slots for number, table in tables(model).items()}


def fingerprint(model: keras.Model) -> str:
    """Returns the SHA-256 sum of a model's weights except the value tables'.

    It depends on their order, shapes and bits, but not on their names, and on
    the arguments by which memories of n-grams and of facts find their slots.
    """
    of_tables = {
        id(weight)
        for table in tables(model).values()
        for weight in table.weights
    }
    digest = hashlib.sha256()
    for weight in model.weights:
        if id(weight) not in of_tables:
            array = np.ascontiguousarray(ops.convert_to_numpy(weight))
            digest.update(f"{array.dtype.name}{array.shape}".encode())
            digest.update(array.tobytes())
    for number, memory in memories(model).items():
        if arguments := memory.addressing():
            digest.update(json.dumps([number, arguments]).encode())
    return digest.hexdigest()
