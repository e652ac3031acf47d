"""Shortens the memories' figures in the progress line to two."""

import re
import statistics
from typing import Any

import keras

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
