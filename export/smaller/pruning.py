"""Chooses the slots of a memory to keep: those that a text reads."""

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from export.graph.encoder import Encoder
from export.smaller.text_inputs import batches_of

_BATCH = 32


def read_mass(encoder: Encoder, inputs: dict) -> dict[int, np.ndarray]:
    """Sums the weights with which each slot is read."""
    access = tf.function(
        lambda inputs: encoder(inputs)["memory_access"],
        autograph=False,
        reduce_retracing=True,
    )
    mass = {
        number: np.zeros(table.num_slots)
        for number, table in encoder.tables.items()
    }
    count = -(-len(inputs["input_mask"]) // _BATCH)
    for batch in tqdm(batches_of(inputs, _BATCH), "Reads", count, disable=None):
        for number, (slots, weights) in access(batch).items():
            np.add.at(
                mass[encoder.table_of[number]],
                slots.numpy().ravel(),
                weights.numpy().ravel(),
            )
    return mass


def kept_slots(mass: np.ndarray, percent: float = 100.0) -> np.ndarray:
    """Chooses the smallest set of slots with a given share of the mass."""
    order = np.argsort(-mass, kind="stable")
    before = np.cumsum(mass[order]) - mass[order]
    kept = np.zeros(len(mass), bool)
    kept[order] = before < percent / 100 * mass.sum()
    return kept & (mass > 0)
