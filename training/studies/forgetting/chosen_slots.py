"""Slots that are chosen without TF-IDF, as controls."""

from collections.abc import Mapping

import numpy as np

from keras_pkm.teaching.slot_importance import SlotImportance


class Frequency(SlotImportance):
    """Scores slots by how often a batch reads them."""

    def __init__(self, counted: SlotImportance, seed: int):
        self._seed = seed
        super().__init__(counted.num_batches, counted.document_frequencies)

    def score(self, reads: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        return {n: np.asarray(each, "float64") for n, each in reads.items()}


class RandomSlots(Frequency):
    """Scores the slots that a batch reads at random, by a seed."""

    def score(self, reads: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        return {
            number: np.where(
                np.asarray(each) > 0,
                1
                - np.random.default_rng([self._seed, number]).random(len(each)),
                0,
            )
            for number, each in reads.items()
        }
