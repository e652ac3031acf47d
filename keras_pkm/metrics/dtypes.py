"""Dtypes that all backends of Keras have."""

import keras

_IS_JAX = keras.backend.backend() == "jax"

#: JAX has numbers of 64 bits only for users who ask for them.
WIDEST_FLOAT = "float32" if _IS_JAX else "float64"
WIDEST_INT = "int32" if _IS_JAX else "int64"
#: Keras' own choice: int32, and with TensorFlow int64, because most of its
#: kernels for int32 run on the CPU alone.
INT = keras.backend.standardize_dtype("int")
