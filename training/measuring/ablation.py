"""Removes the contents of a model's memories, or rounds them."""

import contextlib
from collections.abc import Callable
from collections.abc import Iterator
from typing import Literal

import keras
import numpy as np

from keras_pkm.export.value_tables import int8_rows
from keras_pkm.layers.memories import tables
from training.runs.user_error import UserError

Ablation = Literal["zero", "shuffle"]
ABLATIONS: tuple[Ablation, ...] = ("zero", "shuffle")


@contextlib.contextmanager
def ablated_memory(
    model: keras.Model, how: Ablation | None, seed: int = 0
) -> Iterator[None]:
    """Removes the contents of a model's memories within this context.

    With `None` the model stays as it is.
    """
    if how is None:
        yield
        return
    order = np.random.default_rng(seed)
    change = np.zeros_like if how == "zero" else order.permutation
    with _changed_values(model, change):
        yield


@contextlib.contextmanager
def int8_memory(model: keras.Model) -> Iterator[None]:
    """Rounds a model's values to what int8 exports have, in this context."""

    def rounded(values: np.ndarray) -> np.ndarray:
        rows, scales = int8_rows(values)
        return rows * scales[:, None]

    with _changed_values(model, rounded):
        yield


@contextlib.contextmanager
def _changed_values(
    model: keras.Model, change: Callable[[np.ndarray], np.ndarray]
) -> Iterator[None]:
    found = tables(model)
    if not found:
        raise UserError(
            "--ablate-memory needs a model with a memory, received one "
            "without: leave the flag out, or pass another model"
        )
    kept = {number: table.values.numpy() for number, table in found.items()}
    for number, values in kept.items():
        found[number].values.assign(change(values))
    try:
        yield
    finally:
        for number, values in kept.items():
            found[number].values.assign(values)
