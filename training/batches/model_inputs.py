"""Selects the features of batches that a model takes."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf


def keep_inputs(names: Iterable[str], batches: Iterable[Any]) -> Iterable[Any]:
    """Drops the features that a model does not take."""
    names = list(names)

    def keep(
        features: dict, labels: Any, weights: Any
    ) -> tuple[dict, Any, Any]:
        return {name: features[name] for name in names}, labels, weights

    if isinstance(batches, tf.data.Dataset):
        return batches.map(keep)
    return [keep(*batch) for batch in batches]
