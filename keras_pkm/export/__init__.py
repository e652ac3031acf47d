"""SavedModels that any TensorFlow program loads, without this package."""

from typing import TYPE_CHECKING

import keras

from keras_pkm.ops.tensorflow_only import stand_in

# Keras imports TensorFlow on its own backend, but not on others.
if TYPE_CHECKING or keras.backend.backend() == "tensorflow":
    from keras_pkm.export.memory_usage import memory_usage
    from keras_pkm.export.patch import patch
    from keras_pkm.export.saved_model import saved_model
else:
    memory_usage = stand_in("keras_pkm.export.memory_usage")
    patch = stand_in("keras_pkm.export.patch")
    saved_model = stand_in("keras_pkm.export.saved_model")

__all__ = ["memory_usage", "patch", "saved_model"]
