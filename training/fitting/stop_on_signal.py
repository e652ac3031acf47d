"""Ends a run after the step in which a signal came."""

import keras

from keras_pkm.callbacks import TrainingCheckpoint
from training.commands.signals import Interrupted
from training.commands.signals import Signals


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
