"""Collects what a model reads in its memories on a text."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable

import keras
import numpy as np
import tensorflow as tf

from keras_pkm.metrics import ClassMemoryUsage
from keras_pkm.metrics.numbers import result_numbers
from keras_pkm.metrics.top1_slots import top1_slots
from keras_pkm.probing.memory_access import MemoryAccess
from keras_pkm.probing.usage_counter import UsageCounter
from keras_pkm.teaching.slot_importance import SlotImportance

# The factor between the numbers of tokens at two points of a coverage curve.
_GROWTH = 1.25
_FIRST_POINT = 64


@dataclasses.dataclass(frozen=True)
class MemoryReads:
    """The reads of one memory."""

    # The result of `keras_pkm.metrics.MemoryUsage`.
    figures: dict[str, float]
    # `MemoryUsage.counts`.
    counts: dict[str, np.ndarray]
    # Points of a curve: the number of tokens so far, `"tokens"`, with `"mu"`
    # and `"top1_mu"` of these.
    coverage: list[dict[str, float]]
    # Int32 array of shape `(rows, length, num_heads)`, the best slot of each
    # head at each position of the kept text, -1 where a head reads nothing, as
    # at padding; or None.
    top1: np.ndarray | None

    @property
    def num_slots(self) -> int:
        """Number of slots of the memory."""
        return len(self.counts["reads"])


@dataclasses.dataclass(frozen=True)
class TextReads:
    """The reads of all memories on a text."""

    # Number of tokens, without padding.
    tokens: int
    # `MemoryReads` by the number of the layer.
    memories: dict[int, MemoryReads]
    # Int32 array of shape `(rows, length)`, the kept beginning of the text, or
    # None.
    token_ids: np.ndarray | None
    # Bool array of the same shape, or None.
    is_token: np.ndarray | None


def collect_reads(
    accesses: Iterable[MemoryAccess], kept_tokens: int
) -> TextReads:
    """Counts the reads of memory accesses."""
    tokens, kept, last_point = 0, 0, -1
    next_point: float = _FIRST_POINT
    usage = None
    coverage: dict[int, list[dict[str, float]]] = defaultdict(list)
    texts: list[tuple] = []
    top1: dict[int, list[np.ndarray]] = defaultdict(list)
    for access in accesses:
        if usage is None:
            usage = UsageCounter(access.num_slots)
        keep = access.token_ids is not None and kept < kept_tokens
        usage.update(access.memories, access.is_token)
        for number, (slots, weights) in access.memories.items():
            if keep:
                best = np.asarray(top1_slots(slots, weights))
                top1[number].append(np.where(weights.any(-1), best, -1))
        count = int(access.is_token.sum())
        tokens += count
        if keep:
            texts.append((access.token_ids, access.is_token))
            kept += count
        if tokens >= next_point:
            next_point, last_point = tokens * _GROWTH, tokens
            _add_point(coverage, tokens, usage)
    if usage is None:
        return TextReads(0, {}, None, None)
    if last_point < tokens:
        _add_point(coverage, tokens, usage)
    token_ids, is_token = (
        (np.concatenate(part) for part in zip(*texts))
        if texts
        else (None, None)
    )
    memories = {
        number: MemoryReads(
            figures,
            usage.counts[number],
            coverage[number],
            np.concatenate(top1[number]) if texts else None,
        )
        for number, figures in usage.figures.items()
    }
    return TextReads(tokens, memories, token_ids, is_token)


def _add_point(
    coverage: dict[int, list], tokens: int, usage: UsageCounter
) -> None:
    for number, counts in usage.counts.items():
        coverage[number].append(
            {
                "tokens": tokens,
                "mu": float(np.mean(counts["reads"] > 0)),
                "top1_mu": float(np.mean(counts["top1"] > 0)),
            }
        )


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


# Enough to distinguish slots that all text reads from those that few texts do.
_BATCHES = 200


def count_background(
    model: keras.Model, batches: tf.data.Dataset
) -> SlotImportance:
    """Counts the batches of a text that read each slot."""
    return SlotImportance.of_background(model, batches.take(_BATCHES))
