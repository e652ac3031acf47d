"""Two figures of all memories in the progress line, instead of nine of each."""

import re
import statistics

import keras

_FIGURE = re.compile(r"memory_\d+_(\w+)")
# What Keras prints of them: the share of slots that are the best of a head at
# some token, and that of slots which were so at an earlier evaluation only.
_SHOWN = {"top1_mu": "memory_top1_used", "stale": "memory_stale"}


class ShortProgress(keras.callbacks.Callback):
    """Replaces the memories' figures in the logs by two means over memories.

    Keras' progress line comes after all callbacks: put this one behind those
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
