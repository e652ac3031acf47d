"""A table, and gradients that name some of its rows."""

import keras
import numpy as np
import tensorflow as tf

from keras_pkm.ops import mark_as_table


def table(values):
    values = np.asarray(values, "float32")
    variable = keras.Variable(values, name="values", autocast=False)
    mark_as_table(variable)
    return variable


def slices(rows, values, shape):
    return tf.IndexedSlices(
        tf.constant(values, "float32"),
        tf.convert_to_tensor(rows, "int32"),
        tf.constant(shape),
    )
