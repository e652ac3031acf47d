"""Compares a model's reads for two classes of labelled examples."""

from collections.abc import Iterable

import numpy as np

from keras_pkm.metrics import ClassMemoryUsage
from keras_pkm.metrics.numbers import result_numbers
from keras_pkm.probing.memory_access import MemoryAccess


def compare_classes(
    accesses: Iterable[MemoryAccess], labels: np.ndarray
) -> dict[int, dict[str, float]]:
    """Compares the reads for examples of class 0 and of class 1."""
    metrics, done = {}, 0
    for access in accesses:
        some = labels[done : done + len(access.is_token)]
        done += len(some)
        for number, (slots, weights) in access.memories.items():
            if number not in metrics:
                metrics[number] = ClassMemoryUsage(access.num_slots[number])
            metrics[number].update_state(
                slots[: len(some)],
                weights[: len(some)],
                some,
                access.is_token[: len(some)],
            )
    return {
        number: result_numbers(metric)
        for number, metric in sorted(metrics.items())
    }
