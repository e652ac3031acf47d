"""Callbacks for the evaluations of a stage of pretraining."""

import dataclasses
import pathlib
import time
from collections.abc import Callable
from typing import Any

import keras
import keras_hub

from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.files.presets import save_preset
from training.fitting.resumable_fit import Progress
from training.measuring.perplexity import Evaluation


@dataclasses.dataclass
class StageProgress(Progress):
    """The figures of a stage so far, and of the stages before it.

    It is created when a stage begins; only the callbacks of
    `training.pretraining.stage_callbacks` change it.
    """

    # The figures of the stages before.
    finished: list[dict] = dataclasses.field(default_factory=list)
    # The held-out perplexity before the first step, if the stage starts from
    # another model.
    perplexity_before: float | None = None
    # The lowest held-out perplexity so far.
    lowest: float = float("inf")
    # The stage's figures at the last evaluation.
    figures: dict = dataclasses.field(default_factory=dict)


class EvaluateHeldOut(keras.callbacks.Callback):
    """Measures the held-out text after each epoch, and keeps the figures.

    The perplexity goes into the logs as `val_perplexity`. All figures go into
    the state of the checkpoint, from which the results are made.

    Attributes:
        evaluation: The last `Evaluation`, or `None` before the first.
    """

    def __init__(
        self,
        checkpoint: TrainingCheckpoint,
        evaluate: Callable[[], Evaluation],
        tokens_per_step: int,
    ):
        super().__init__()
        self.checkpoint = checkpoint
        self.evaluation: Evaluation | None = None
        self._evaluate = evaluate
        self._tokens_per_step = tokens_per_step
        self._throughput = _Throughput()

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        self._throughput.pause()

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        self._throughput.count()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.evaluation = self._evaluate()
        logs["val_perplexity"] = self.evaluation.perplexity
        progress = self.checkpoint.state
        progress.figures = {
            "steps": self.checkpoint.step,
            "tokens_per_second": self._throughput.steps_per_second
            * self._tokens_per_step,
            "skipped_steps": progress.skipped_steps,
            **self.evaluation.figures(),
        }


class SavePresets(keras.callbacks.Callback):
    """Saves the model at each evaluation: the last one and the best so far."""

    def __init__(
        self,
        checkpoint: TrainingCheckpoint,
        preprocessor: keras_hub.models.Preprocessor,
        last: pathlib.Path,
        best: pathlib.Path | None,
    ):
        super().__init__()
        self.checkpoint = checkpoint
        self.preprocessor = preprocessor
        self.last = last
        self.best = best

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        save_preset(self.model, self.preprocessor, self.last)
        progress = self.checkpoint.state
        if self.best and logs["val_perplexity"] < progress.lowest:
            progress.lowest = logs["val_perplexity"]
            save_preset(self.model, self.preprocessor, self.best)


class _Throughput:
    """Measures steps per second, without the first step after a pause.

    The very first step traces the graph. Evaluations are not counted.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._seconds = 0.0
        self._since: float | None = None

    def pause(self) -> None:
        self._since = None

    def count(self) -> None:
        now = time.perf_counter()
        if self._since is not None:
            self._steps += 1
            self._seconds += now - self._since
        self._since = now

    @property
    def steps_per_second(self) -> float:
        """Steps per second so far; 0 before the second step."""
        return self._steps / self._seconds if self._steps else 0.0
