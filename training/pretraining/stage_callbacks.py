"""What a stage of pretraining does besides training."""

import time

import keras

from keras_pkm.runs.run_directory import save_preset
from training.commands.signals import Interrupted


class KeepFigures(keras.callbacks.Callback):
    """Keeps the figures of the last epoch in the checkpoint's state."""

    def __init__(self, checkpoint, recipe):
        super().__init__()
        self.checkpoint = checkpoint
        self._throughput = _Throughput()
        self._tokens = (
            recipe.batch_size * recipe.accumulate * recipe.sequence_length
        )

    def on_epoch_begin(self, epoch, logs=None):
        self._throughput.pause()

    def on_train_batch_end(self, batch, logs=None):
        self._throughput.count()

    def on_epoch_end(self, epoch, logs=None):
        self.checkpoint.state["figures"] = {
            "steps": self.checkpoint.step,
            "tokens_per_second": self._throughput.batches_per_second
            * self._tokens,
            "skipped_steps": self.checkpoint.state.get("skipped_steps", 0),
        }


class SavePresets(keras.callbacks.Callback):
    """Keeps the model at each evaluation: the last, and the best so far."""

    def __init__(self, checkpoint, preprocessor, last, best):
        super().__init__()
        self.checkpoint = checkpoint
        self.preprocessor = preprocessor
        self.last = last
        self.best = best

    def on_epoch_end(self, epoch, logs=None):
        save_preset(self.model, self.preprocessor, self.last)
        lowest = self.checkpoint.state.get("lowest", float("inf"))
        if self.best and logs["val_perplexity"] < lowest:
            self.checkpoint.state["lowest"] = logs["val_perplexity"]
            save_preset(self.model, self.preprocessor, self.best)


class StopOnSignal(keras.callbacks.Callback):
    """Ends the run after the step in which a signal came.

    After an epoch's last step it waits for the evaluation.
    """

    def __init__(self, checkpoint, signals):
        super().__init__()
        self.checkpoint = checkpoint
        self.signals = signals

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 < self.params["steps"]:
            self._stop_if_asked()

    def on_epoch_end(self, epoch, logs=None):
        self._stop_if_asked()

    def _stop_if_asked(self):
        if self.signals.received is not None:
            self.checkpoint.save()
            raise Interrupted(self.signals.received)


class _Throughput:
    """Batches a second, without the first batch after a pause.

    The very first traces the graph; the clock stands still in evaluations.
    """

    def __init__(self):
        self._batches = 0
        self._seconds = 0.0
        self._since = None

    def pause(self):
        self._since = None

    def count(self):
        now = time.perf_counter()
        if self._since is not None:
            self._batches += 1
            self._seconds += now - self._since
        self._since = now

    @property
    def batches_per_second(self):
        """0 before the second batch."""
        return self._batches / self._seconds if self._batches else 0.0
