"""Steps that the optimizer skipped, as a gradient was not finite."""

import keras

from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.runs.user_error import RunError


class SkippedSteps(keras.callbacks.Callback):
    """Counts skipped steps, and ends a run in which they do not end.

    The count goes into the logs of the epoch as `skipped_steps`, unless it is
    zero, as it should be without loss scaling. As long as steps are skipped, no
    checkpoint is written: that before them is kept.

    Args:
        checkpoint: `TrainingCheckpoint` whose `state` is a `Progress`. It comes
            after this callback.
        limit: int or None. So many in a row raise `RunError`. `None`, for
            loss scaling, where they are usual: never.
    """

    def __init__(self, checkpoint: TrainingCheckpoint, limit: int | None):
        super().__init__()
        self.checkpoint = checkpoint
        self.limit = limit
        self._in_a_row = 0
        self._applied = None

    def on_train_begin(self, logs: dict | None = None) -> None:
        self._applied = self._iterations()

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        applied = self._iterations()
        skipped = applied == self._applied
        self._applied = applied
        self._in_a_row = self._in_a_row + 1 if skipped else 0
        self.checkpoint.paused = self._in_a_row > 0
        self.checkpoint.state.skipped_steps += skipped
        if skipped and self._in_a_row == self.limit:
            last = self.checkpoint.step + 1
            first = last + 1 - self.limit
            raise RunError(
                f"the loss or its gradient was not finite at the {self.limit} "
                f"steps {first:,} to {last:,}, counted from 1. The last "
                f"checkpoint is '{self.checkpoint.latest}', from before them. "
                "A lower --learning-rate or a --clip-norm helps, in a new run"
            )

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        skipped = self.checkpoint.state.skipped_steps
        if logs is not None and (skipped or self.limit is None):
            logs["skipped_steps"] = skipped

    def _iterations(self):
        return int(self.model.optimizer.iterations.numpy())
