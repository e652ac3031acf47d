"""Perplexity while a model trains, step by step: how training begins."""

import csv
import math
import pathlib
from collections.abc import Callable

import keras


class PerplexityLog(keras.callbacks.Callback):
    """Writes the training perplexity of every so many steps to a CSV file.

    Keras logs means since the epoch began, in which a steep start is lost: this
    takes them apart again. Batches count alike, although some have a few masked
    tokens more than others.

    Args:
        path: of the file, to which rows are added.
        every: int. Steps of a row. Each of the first `every` steps has its own.
        count: callable that returns how many steps have been done.
    """

    def __init__(
        self, path: pathlib.Path, every: int, count: Callable[[], int]
    ):
        super().__init__()
        self.path = path
        self.every = every
        self.count = count
        self._rows = []
        self._begin()

    def _begin(self):
        # Batches of the epoch, those in rows, and the sum of their losses.
        self._batches, self._done, self._sum = 0, 0, 0.0

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        self._begin()

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
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
