"""Selects the features of batches that a model takes."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf


def keep_inputs(names: Iterable[str], batches: Iterable[Any]) -> Iterable[Any]:
    """Drops the features that a model does not take.

    Args:
        names: The names of the features that it takes, `task.input`.
            DistilBERT and RoBERTa take no segments.
        batches: A dataset, or a list, of features, labels and weights.

    Returns:
        A dataset, or a list, like `batches`.
    """
    names = list(names)

    def keep(features, labels, weights):
        return {name: features[name] for name in names}, labels, weights

    if isinstance(batches, tf.data.Dataset):
        return batches.map(keep)
    return [keep(*batch) for batch in batches]
