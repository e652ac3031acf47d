"""Removes the contents of a model's memories, to measure their worth."""

import contextlib
from collections.abc import Iterator
from typing import Literal

import keras
import numpy as np

from keras_pkm.layers.find_memories import find_memories
from keras_pkm.runs.user_error import UserError

Ablation = Literal["zero", "shuffle"]
ABLATIONS: tuple[Ablation, ...] = ("zero", "shuffle")


@contextlib.contextmanager
def ablated_memory(
    model: keras.Model, how: Ablation, seed: int = 0
) -> Iterator[None]:
    """Removes the contents of a model's memories within this context.

    Args:
        model: Any Keras model with `ProductKeyMemory` layers.
        how: `"zero"` sets all values to zero; `"shuffle"` gives each slot the
            values of another one, so that their distribution stays the same.
        seed: Seed of the order of the shuffled slots.

    Raises:
        UserError: the model has no memory.
    """
    memories = find_memories(model)
    if not memories:
        raise UserError(
            "--ablate-memory needs a model with a memory, received one "
            "without: leave the flag out, or pass another model"
        )
    tables = {
        number: memory.memory_values.numpy()
        for number, memory in memories.items()
    }
    order = np.random.default_rng(seed)
    for number, table in tables.items():
        memories[number].memory_values.assign(
            np.zeros_like(table) if how == "zero" else order.permutation(table)
        )
    try:
        yield
    finally:
        for number, table in tables.items():
            memories[number].memory_values.assign(table)
