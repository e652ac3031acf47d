"""Slots that are chosen without TF-IDF, as controls."""

import numpy as np

from keras_pkm.teaching.slot_importance import SlotImportance


class Frequency(SlotImportance):
    """Scores slots by how often a batch reads them."""

    def __init__(self, counted: SlotImportance, seed: int):
        self._seed = seed
        super().__init__(counted.num_batches, counted.document_frequencies)

    def score_slots(
        self, reads: np.ndarray, document_frequency: np.ndarray
    ) -> np.ndarray:
        return np.asarray(reads, "float64")


class RandomSlots(Frequency):
    """Scores the slots that a batch reads at random, by a seed."""

    def score_slots(
        self, reads: np.ndarray, document_frequency: np.ndarray
    ) -> np.ndarray:
        drawn = np.random.default_rng(self._seed).random(len(reads))
        return np.where(np.asarray(reads) > 0, 1 - drawn, 0)
