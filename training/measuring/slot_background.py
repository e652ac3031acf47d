"""Counts the batches of a training text that read each slot."""

import keras
import tensorflow as tf

from keras_pkm.teaching.slot_importance import SlotImportance

# Enough to distinguish slots that all text reads from those that few texts do.
_BATCHES = 200


def count_background(
    model: keras.Model, batches: tf.data.Dataset
) -> SlotImportance:
    """Counts the batches of a text that read each slot."""
    return SlotImportance.of_background(model, batches.take(_BATCHES))
