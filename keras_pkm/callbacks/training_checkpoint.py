"""Checkpoints from which training resumes exactly."""

import dataclasses
import itertools
import json
import logging
import os
import time
from typing import Any

import keras
import tensorflow as tf

from keras_pkm.callbacks.checkpoint_files import CheckpointFiles
from keras_pkm.callbacks.variable_identity import identify_variables
from keras_pkm.callbacks.whole_executions import check_executions
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.arguments import positive_int_or_none

_log = logging.getLogger(__name__)

# TensorFlow's name of a checkpoint's `progress`.
_PROGRESS = "progress/.ATTRIBUTES/py_state"


class TrainingCheckpoint(keras.callbacks.Callback):
    """Saves the state of training, so that it resumes as if uninterrupted.

    A checkpoint contains every variable of the model and of its optimizer
    (including the loss scale and the seeds of dropout), the number of steps
    done, and `state`. If the process is killed, even while writing one, the
    last good one is intact. The data must resume, too: give `fit` a dataset
    that begins at the step that `restore` returns. (Keras' own
    `BackupAndRestore` saves neither seeds nor the position in the data, and
    repeats the epoch.)

    Each checkpoint is read back after it has been written; only then are older
    ones deleted. It has a file of checksums: `restore` takes the newest intact
    checkpoint, and logs a warning that names the damaged ones.

    A checkpoint also records the place, shape and dtype of each variable of
    the model. `restore` refuses a checkpoint if the model's variables differ
    from it, for instance because two layers are now created in another order.

    A checkpoint is written at steps that are multiples of `every`, and at the
    end of each epoch, after its evaluation. Put this callback after those that
    change `state`.

    Under `MultiWorkerMirroredStrategy` only the chief writes, and all workers
    restore: they must see the same directory.

    Args:
        directory: path of the checkpoints.
        every: optional int. Steps between checkpoints. Defaults to `None`: at
            the ends of epochs only. With `steps_per_execution` a checkpoint is
            written after the execution in which it is due.
        keep: int. The number of newest checkpoints to keep. Defaults to `2`:
            if the disk damages one, there is another to resume from.
        state: optional dict, or dataclass that is not frozen, with anything
            else to save. It must be serializable as JSON, and is restored in
            place from JSON: keys become strings, and tuples become lists.
            Defaults to an empty dict.

    Attributes:
        step: int. Steps done, skipped ones included.
        state: dict or dataclass, saved and restored. Its content is up to the
            caller.
        paused: bool. While it is true, nothing is saved, for instance during
            a series of skipped steps.
        seconds: float. The time spent on writing checkpoints and on reading
            them back.

    Raises:
        OSError: the checkpoint could not be written; the last one is intact.
        ValueError: training begins without `restore`, and `directory` has
            checkpoints of later steps, which would be deleted; or, with
            `steps_per_execution`, the number of steps of an epoch is unknown
            or not a multiple of it.

    Example:

    >>> import tempfile
    >>> def train(steps):
    ...     keras.utils.set_random_seed(0)
    ...     model = keras.Sequential([keras.layers.Dropout(0.5)])
    ...     model.add(keras.layers.Dense(1))
    ...     model.build((None, 4))
    ...     model.compile(keras_pkm.optimizers.PKMAdam(),
    ...                   loss="mse")
    ...     checkpoint.restore(model)
    ...     batches = tf.data.Dataset.range(checkpoint.step, steps).map(
    ...         lambda step: (tf.ones((8, 4)), tf.ones((8, 1))))
    ...     model.fit(
    ...         batches, callbacks=[checkpoint], shuffle=False, verbose=0)
    ...     return model.layers[1].bias.numpy().item()
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     checkpoint = keras_pkm.callbacks.TrainingCheckpoint(directory)
    ...     _ = train(steps=3)
    ...     resumed = train(steps=5)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     checkpoint = keras_pkm.callbacks.TrainingCheckpoint(directory)
    ...     resumed == train(steps=5)
    True
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        every: int | None = None,
        keep: int = 2,
        state: Any = None,
    ):
        super().__init__()
        self.directory = str(directory)
        self.every = positive_int_or_none("every", every)
        self.keep = positive_int("keep", keep)
        self.step = 0
        self.state: Any = {} if state is None else state
        self.paused = False
        self.seconds = 0.0
        self._files = CheckpointFiles(self.directory)
        self._checkpoint: tf.train.Checkpoint | None = None
        self._optimizer: keras.optimizers.Optimizer | None = None
        self._was_restored = False
        self._saved: int | None = None
        self._done_in_epoch = 0

    @property
    def latest(self) -> str | None:
        """The newest checkpoint's path prefix, damaged or not, or `None`."""
        steps = self._files.steps()
        return self._files.prefix(steps[0]) if steps else None

    def restore(self, model: keras.Model) -> int:
        """Restores a compiled model, and this callback, from a checkpoint.

        It takes the newest intact checkpoint. Damaged ones are skipped, with a
        warning in the log.

        Args:
            model: built and compiled `keras.Model`, like the one that was
                saved.

        Returns:
            The number of steps done, or `0` if there is no checkpoint yet.

        Raises:
            ValueError: the checkpoint does not have the model's variables.
                Nothing is changed then.
            OSError: there are checkpoints, but none is intact.
        """
        self.set_model(model)
        path = self._find_whole()
        if path is None:
            self.step = 0
            self._was_restored = True
            return 0
        checkpoint = self._checkpoint_of_model()
        self._check_variables(path)
        try:
            checkpoint.restore(path).assert_consumed()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise ValueError(
                f"The checkpoint '{path}' cannot be restored into the model "
                f"'{model.name}': {_first_line(error)}"
            ) from error
        self._saved = self.step
        self._was_restored = True
        return self.step

    def _check_variables(self, path: str) -> None:
        """Checks that a checkpoint is of the same variables, in their order."""
        reader = tf.train.load_checkpoint(path)
        progress = "{}"
        if reader.has_tensor(_PROGRESS):
            progress = reader.get_tensor(_PROGRESS)
        saved = json.loads(progress).get("variables")
        advice = (
            "Use the code that wrote the checkpoint, or start over in another "
            "directory."
        )
        if saved is None:
            raise ValueError(
                f"The checkpoint '{path}' must say which variables it has. "
                "Received: one that an earlier version of keras_pkm wrote. "
                f"{advice}"
            )
        found = identify_variables(self.model)
        if saved == found:
            return
        differences = [
            f"`{old}` in the checkpoint, `{new}` in the model"
            for kind in ("model", "optimizer")
            for old, new in itertools.zip_longest(
                saved[kind], found[kind], fillvalue="nothing"
            )
            if old != new
        ]
        raise ValueError(
            f"The checkpoint '{path}' cannot be restored into the model "
            f"'{self.model.name}': the variables of the model and its "
            "optimizer must be the same, in the same order. Received: "
            f"{len(differences)} that differ, the first of which is "
            f"{differences[0]}. {advice}"
        )

    def _find_whole(self) -> str | None:
        """The newest checkpoint that is whole, or `None` if there is none."""
        faults: list[str] = []
        for step in self._files.steps():
            fault = self._files.find_fault(step)
            if fault is None:
                if faults:
                    _log.warning(
                        "Damaged checkpoints in '%s' are skipped: %s. "
                        "Training resumes from step %s",
                        self.directory,
                        "; ".join(faults),
                        f"{step:,}",
                    )
                return self._files.prefix(step)
            faults.append(f"step {step:,} ({fault})")
        if faults:
            raise OSError(
                f"no checkpoint in '{self.directory}' is whole: "
                f"{'; '.join(faults)}. Put back a copy of these files, or "
                "start over in another directory"
            )
        return None

    def set_model(self, model: keras.Model) -> None:
        if model is not self.model:
            self._checkpoint = self._saved = None
        super().set_model(model)

    def _checkpoint_of_model(self) -> tf.train.Checkpoint:
        model = self.model
        # `compile` gives the model a new optimizer.
        if self._checkpoint is None or self._optimizer is not model.optimizer:
            if not model.built:
                raise ValueError(
                    f"The model '{model.name}' must be built before it is "
                    "restored: call `model.build(input_shape)`."
                )
            if not model.optimizer.built:
                with model.distribute_strategy.scope():
                    model.optimizer.build(model.trainable_variables)
            # By order, not by name: names of seeds and optimizers depend on
            # how many the process has created before. `_check_variables`
            # compares what does not.
            self._checkpoint = tf.train.Checkpoint(
                model=[variable.value for variable in model.variables],
                optimizer=[
                    variable.value for variable in model.optimizer.variables
                ],
                progress=_Progress(self),
            )
            # Created on first use; without it TensorFlow would miss it.
            self._checkpoint.save_counter  # noqa: B018
            self._optimizer = model.optimizer
        return self._checkpoint

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        check_executions(self.model, self.params)
        later = [step for step in self._files.steps() if step > self.step]
        if later and not self._was_restored:
            raise ValueError(
                "`directory` must have no checkpoints of later steps if "
                "training begins without `restore`: they would be deleted. "
                f"Received: '{self.directory}' with one of step {later[0]:,}. "
                "Call `restore(model)` before `fit` to resume from it, or pass "
                "another directory."
            )

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        done = batch + 1
        before, self.step = self.step, self.step + done - self._done_in_epoch
        self._done_in_epoch = done
        # The last step of an epoch is saved after the evaluation.
        is_last = done == self.params.get("steps")
        if self.every and self.step // self.every > before // self.every:
            if not is_last:
                self.save()

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        self._done_in_epoch = 0

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        self._saved = None
        self.save()

    def save(self) -> None:
        """Saves now, unless this step has been saved already."""
        if self.paused or self._saved == self.step:
            return
        # All workers build the optimizer: each new variable is sent to all.
        checkpoint = self._checkpoint_of_model()
        started = time.perf_counter()
        try:
            if self.model.distribute_strategy.extended.should_checkpoint:
                self._files.write(checkpoint, self.step)
                self._files.keep_only(self._steps_to_keep())
        except tf.errors.OpError as error:
            raise OSError(
                f"the checkpoint of step {self.step:,} could not be written "
                f"to '{self.directory}': {_first_line(error)}"
            ) from error
        self._saved = self.step
        self.seconds += time.perf_counter() - started

    def _steps_to_keep(self) -> list[int]:
        # Later checkpoints are damaged, or training would have resumed there.
        earlier = [step for step in self._files.steps() if step <= self.step]
        return earlier[: self.keep]


class _Progress(tf.train.experimental.PythonState):
    """Step and state of a `TrainingCheckpoint`, as a part of its files."""

    def __init__(self, owner: TrainingCheckpoint):
        self._owner = owner

    def serialize(self) -> str:
        state = self._owner.state
        if dataclasses.is_dataclass(state) and not isinstance(state, type):
            state = dataclasses.asdict(state)
        return json.dumps(
            {
                "step": self._owner.step,
                "state": state,
                "variables": identify_variables(self._owner.model),
            }
        )

    def deserialize(self, string_value: str) -> None:
        progress = json.loads(string_value)
        self._owner.step = progress["step"]
        # In place: the caller goes on with the object that was passed.
        state = self._owner.state
        if isinstance(state, dict):
            state.clear()
            state.update(progress["state"])
            return
        for name, value in progress["state"].items():
            setattr(state, name, value)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
