"""Raises an error on import unless Keras uses the TensorFlow backend."""

import keras

if keras.backend.backend() != "tensorflow":
    raise ImportError(
        "keras_pkm needs the TensorFlow backend of Keras. Received: "
        f"'{keras.backend.backend()}'. Set the environment variable "
        "KERAS_BACKEND=tensorflow, or `backend` in ~/.keras/keras.json, before "
        "Keras is imported."
    )
