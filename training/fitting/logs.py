"""Logs the figures of each epoch in a CSV file, also in resumed runs."""

import csv
import math
import pathlib
import re
import statistics
from collections.abc import Callable
from typing import Any

import keras
import numpy as np


class EpochLog(keras.callbacks.Callback):
    """Adds a row with the figures of each epoch to a CSV file.

    The first row defines the columns, also after a run is resumed. (Keras' own
    `CSVLogger` uses the columns of the first epoch after the restart, without a
    header. If they are different, values end up in the wrong columns.)
    """

    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.path = path

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        row = {"epoch": epoch, **(logs or {})}
        columns = self._read_columns()
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(
                file, columns or list(row), restval="", extrasaction="ignore"
            )
            if not columns:
                writer.writeheader()
            writer.writerow(row)

    def _read_columns(self) -> list[str]:
        if not self.path.exists():
            return []
        with open(self.path, newline="", encoding="utf-8") as file:
            return next(csv.reader(file), [])


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
        self._done, self._sum = self._batches, total
        # At once, since a run may be stopped within an epoch.
        is_new = not self.path.exists()
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(["step", "perplexity"])
            with np.errstate(over="ignore"):
                writer.writerow((step, np.exp(mean)))


_FIGURE = re.compile(r"memory_\d+_(\w+)")
# The figures that Keras prints: the share of slots that are a head's best slot,
# and the share of slots that were so only at an earlier evaluation.
_SHOWN = {"top1_mu": "memory_top1_used", "stale": "memory_stale"}


class ShortProgress(keras.callbacks.Callback):
    """Replaces the memories' figures in the logs by two means over memories.

    Keras prints its progress line after all callbacks. Put this one after those
    that write all figures to files.
    """

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        found: dict[str, list[float]] = {}
        for name in list(logs or ()):
            if match := _FIGURE.fullmatch(name):
                found.setdefault(match[1], []).append(logs.pop(name))
        for figure, title in _SHOWN.items():
            if figure in found:
                logs[title] = statistics.mean(found[figure])
