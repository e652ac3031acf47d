"""Logs the training perplexity step by step."""

import csv
import math
import pathlib
from collections.abc import Callable
from typing import Any

import keras


class PerplexityLog(keras.callbacks.Callback):
    """Writes the training perplexity to a CSV file, at regular intervals.

    Keras logs means since the start of the epoch, which hide a steep start.
    This callback computes the mean of each interval from them. All batches
    count alike, although some have a few more masked tokens than others.
    """

    def __init__(
        self, path: pathlib.Path, every: int, count: Callable[[], int]
    ):
        super().__init__()
        self.path = path
        self.every = every
        self.count = count
        self._rows: list[tuple[int, float]] = []
        self._begin()

    def _begin(self) -> None:
        # Batches of the epoch, batches covered by rows, sum of their losses.
        self._batches, self._done, self._sum = 0, 0, 0.0

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        self._begin()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._batches += 1
        step = self.count()
        if step > self.every and step % self.every:
            return
        total = math.log(logs["perplexity"]) * self._batches
        mean = (total - self._sum) / (self._batches - self._done)
        self._rows.append((step, math.exp(mean)))
        self._done, self._sum = self._batches, total

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        is_new = not self.path.exists()
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(["step", "perplexity"])
            writer.writerows(self._rows)
        self._rows.clear()
