"""Removes the contents of a model's memories, to measure their worth."""

import contextlib
from collections.abc import Iterator
from typing import Literal

import keras
import numpy as np

from keras_pkm.layers.memories import tables
from training.runs.user_error import UserError

Ablation = Literal["zero", "shuffle"]
ABLATIONS: tuple[Ablation, ...] = ("zero", "shuffle")


@contextlib.contextmanager
def ablated_memory(
    model: keras.Model, how: Ablation, seed: int = 0
) -> Iterator[None]:
    """Removes the contents of a model's memories within this context."""
    found = tables(model)
    if not found:
        raise UserError(
            "--ablate-memory needs a model with a memory, received one "
            "without: leave the flag out, or pass another model"
        )
    kept = {number: table.values.numpy() for number, table in found.items()}
    order = np.random.default_rng(seed)
    for number, values in kept.items():
        found[number].values.assign(
            np.zeros_like(values)
            if how == "zero"
            else order.permutation(values)
        )
    try:
        yield
    finally:
        for number, values in kept.items():
            found[number].values.assign(values)
