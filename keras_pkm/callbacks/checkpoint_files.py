"""Checkpoint files, numbered by step, each with its checksums."""

import os
import re
from collections.abc import Iterable

import tensorflow as tf

from keras_pkm.files.any_file_system import write_whole_anywhere
from keras_pkm.files.checksums import find_change
from keras_pkm.files.checksums import write_checksums

_CHECKSUMS = "checksums.json"
# Others may have files of steps in the same directory.
_NAME = re.compile(r"step-(\d+)(_temp.*|\.(index|data-|checksums\.json).*)$")


class CheckpointFiles:
    """The checkpoints in a directory.

    The checkpoint of step 10 is made of `step-10.index`, `step-10.data-...`
    and `step-10.checksums.json`, which is written last and deleted first. A
    checkpoint whose write was killed before, or of an earlier version, has no
    file of checksums; it is checked against those that TensorFlow keeps within
    its own files. A file `checkpoint` lists the checkpoints for
    `tf.train.latest_checkpoint`; nothing here depends on it.

    Args:
        directory: Path of the directory, which need not exist yet.
    """

    def __init__(self, directory: str):
        self.directory = directory

    def prefix(self, step: int) -> str:
        """Returns the path of a step's checkpoint as TensorFlow names it."""
        return os.path.join(self.directory, f"step-{step}")

    def steps(self) -> list[int]:
        """Returns the steps of all checkpoints, whole or not, newest first.

        A checkpoint whose writing was interrupted does not count.
        """
        return sorted(
            {
                int(found[1])
                for name in self._names()
                if name.endswith((".index", f".{_CHECKSUMS}"))
                and (found := _NAME.match(name))
            },
            reverse=True,
        )

    def find_fault(self, step: int) -> str | None:
        """Returns why a checkpoint is not whole, or `None` if it is."""
        checksums = f"{self.prefix(step)}.{_CHECKSUMS}"
        if tf.io.gfile.exists(checksums):
            return find_change(checksums)
        return self._read_back(step)

    def write(self, checkpoint: tf.train.Checkpoint, step: int) -> None:
        """Writes a checkpoint and reads it back.

        Args:
            checkpoint: The checkpoint to write.
            step: The step that numbers it. An existing checkpoint of that step
                is replaced.

        Raises:
            tf.errors.OpError: it could not be written, or differs when it is
                read back.
        """
        prefix = self.prefix(step)
        self._remove(f"step-{step}.{_CHECKSUMS}")
        checkpoint.write(prefix)
        if fault := self._read_back(step):
            raise tf.errors.DataLossError(None, None, f"read back, {fault}")
        write_checksums(
            f"{prefix}.{_CHECKSUMS}",
            [
                name
                for name in self._names()
                if name.startswith(f"step-{step}.") and _NAME.match(name)
            ],
        )

    def keep_only(self, steps: Iterable[int]) -> None:
        """Deletes all other checkpoints, including unfinished ones."""
        kept = set(steps)
        names = [
            name
            for name in self._names()
            if (found := _NAME.match(name))
            and (int(found[1]) not in kept or name.endswith("_temp"))
        ]
        # Checksums go first, so that an interruption leaves no checkpoint that
        # contradicts its checksums.
        for name in sorted(names, key=lambda name: _CHECKSUMS not in name):
            self._remove(name)
        self._tell_tensorflow(kept)

    def _tell_tensorflow(self, steps: set[int]) -> None:
        """Writes the file that `tf.train.latest_checkpoint` reads."""
        lines = [f'model_checkpoint_path: "step-{max(steps)}"'] + [
            f'all_model_checkpoint_paths: "step-{step}"'
            for step in sorted(steps)
        ]
        path = os.path.join(self.directory, "checkpoint")
        write_whole_anywhere(path, "\n".join(lines) + "\n")

    def _read_back(self, step: int) -> str | None:
        """Reads all values; TensorFlow checks them against its checksums."""
        try:
            reader = tf.train.load_checkpoint(self.prefix(step))
            for name in reader.get_variable_to_shape_map():
                reader.get_tensor(name)
        # The kind of error depends on where the file is damaged.
        except Exception as error:
            return str(error).strip().splitlines()[0]
        return None

    def _names(self) -> list[str]:
        if not tf.io.gfile.isdir(self.directory):
            return []
        return [
            name.rstrip("/") for name in tf.io.gfile.listdir(self.directory)
        ]

    def _remove(self, name: str) -> None:
        path = os.path.join(self.directory, name)
        if tf.io.gfile.isdir(path):
            tf.io.gfile.rmtree(path)
        elif tf.io.gfile.exists(path):
            tf.io.gfile.remove(path)
