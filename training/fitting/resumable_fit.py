"""A fit that resumes from a checkpoint, even in the middle of an epoch."""

import dataclasses
import sys
import time
from collections.abc import Callable
from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_pkm.callbacks import SkippedSteps
from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.optimizers import LossScaleOptimizer
from training.commands.signals import Interrupted
from training.commands.signals import Signals
from training.runs.user_error import RunError


class StopOnSignal(keras.callbacks.Callback):
    """Writes a checkpoint and ends the run once a signal has come.

    After an epoch's last step it waits for the evaluation.
    """

    def __init__(self, checkpoint: TrainingCheckpoint, signals: Signals):
        super().__init__()
        self.checkpoint = checkpoint
        self.signals = signals

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        if batch + 1 < self.params["steps"]:
            self._stop_if_asked()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        self._stop_if_asked()

    def _stop_if_asked(self) -> None:
        if self.signals.received is not None:
            self.checkpoint.save()
            raise Interrupted(self.signals.received)


class SkippedStepsOfRun(SkippedSteps):
    """Counts the skipped steps of a run since its first start.

    The count goes into the logs of the epoch as `skipped_steps`. With a `limit`
    it is left out while it is zero. While steps are being skipped, no
    checkpoint is written, so that the last one is from before them.
    """

    def __init__(self, checkpoint: TrainingCheckpoint, limit: int | None):
        super().__init__(limit)
        self.checkpoint = checkpoint

    def on_train_begin(self, logs: dict | None = None) -> None:
        # A run that is resumed within an epoch has two fits. A series of
        # skipped steps does not end between them.
        in_a_row = self.in_a_row
        super().on_train_begin(logs)
        self.in_a_row = in_a_row

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        before = self.total
        try:
            super().on_train_batch_end(batch, logs)
        except FloatingPointError:
            last = self.checkpoint.step + 1
            first = last + 1 - self.in_a_row
            raise RunError(
                "the loss or its gradient was not finite at the "
                f"{self.in_a_row} steps {first:,} to {last:,}, counted from 1. "
                f"The last checkpoint is '{self.checkpoint.latest}', from "
                "before them. A lower --learning-rate or a --clip-norm helps, "
                "in a new run"
            ) from None
        self.checkpoint.state.skipped_steps += self.total - before
        self.checkpoint.paused = self.in_a_row > 0

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        skipped = self.checkpoint.state.skipped_steps
        if logs is not None and (skipped or self.limit is None):
            logs["skipped_steps"] = skipped


@dataclasses.dataclass
class Progress:
    """The progress of a run; each command adds its own fields.

    Checkpoints store the fields as JSON, by name.
    """

    # Number of steps so far whose loss or gradient was not finite.
    skipped_steps: int = 0


def resumable_fit(
    model: keras.Model,
    batches: Callable[[int, int], tf.data.Dataset],
    *,
    steps: int,
    steps_per_epoch: int,
    checkpoint: TrainingCheckpoint,
    signals: Signals,
    callbacks: Sequence[keras.callbacks.Callback],
    max_skipped_steps: int,
    prints: bool = True,
) -> None:
    """Trains a compiled model to the end.

    Callbacks run in this order. Skipped steps are counted first, so that no
    checkpoint is written during a series of them. Then come the command's own
    callbacks, which may change the checkpoint's `state`; then the checkpoint,
    which saves it. Signals are handled last, after everything has been saved.
    """
    # Loss scaling skips steps as a matter of course.
    scales_loss = isinstance(model.optimizer, LossScaleOptimizer)
    limit = None if scales_loss else max_skipped_steps
    in_order = [
        SkippedStepsOfRun(checkpoint, limit),
        *callbacks,
        checkpoint,
        StopOnSignal(checkpoint, signals),
    ]
    # Only terminals can redraw a progress bar.
    verbose = (1 if sys.stdout.isatty() else 2) if prints else 0

    def fit(first_epoch: int, last_epoch: int, steps_of_epoch: int) -> None:
        model.fit(
            batches(checkpoint.step, steps - checkpoint.step),
            initial_epoch=first_epoch,
            epochs=last_epoch,
            steps_per_epoch=steps_of_epoch,
            callbacks=in_order,
            shuffle=False,
            verbose=verbose,
        )

    started, before = time.perf_counter(), checkpoint.seconds
    epoch, done = divmod(checkpoint.step, steps_per_epoch)
    with signals.wait_for_the_step():
        if done:
            fit(epoch, epoch + 1, steps_per_epoch - done)
            epoch += 1
        if checkpoint.step < steps:
            fit(epoch, steps // steps_per_epoch, steps_per_epoch)
    if prints and (spent := checkpoint.seconds - before):
        whole = time.perf_counter() - started
        print(
            f"Writing checkpoints and reading them back took {spent:.1f} s, "
            f"{spent / whole:.1%} of the {whole:,.0f} s of this training"
        )
