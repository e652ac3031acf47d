"""Shortens the memories' figures in the progress line to two."""

import re
import statistics

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

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        found = {}
        for name in [name for name in logs or () if _FIGURE.fullmatch(name)]:
            figure = _FIGURE.fullmatch(name)[1]
            found.setdefault(figure, []).append(logs.pop(name))
        for figure, title in _SHOWN.items():
            if figure in found:
                logs[title] = statistics.mean(found[figure])
