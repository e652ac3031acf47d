"""In how many batches of a training text each slot is read."""

import keras
import tensorflow as tf

from keras_pkm.teaching.slot_importance import SlotImportance

# Enough to tell slots that all text reads from those that few texts read.
_BATCHES = 200


def count_background(
    model: keras.Model, batches: tf.data.Dataset
) -> SlotImportance:
    """Counts which slots the batches of a text read.

    Args:
        model: Any Keras model with memories.
        batches: Of what it is trained on, of which the first 200 are counted.
    """
    return SlotImportance.of_background(model, batches.take(_BATCHES))
