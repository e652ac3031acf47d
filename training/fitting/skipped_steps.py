"""Counts the skipped steps of a run, and pauses checkpoints during them."""

from keras_pkm.callbacks import SkippedSteps
from keras_pkm.callbacks import TrainingCheckpoint
from training.runs.user_error import RunError


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
