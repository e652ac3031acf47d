"""Reads and replaces rows of a table outside of steps."""

import keras
import numpy as np
import tensorflow as tf


def read_rows(component: tf.Variable, rows: np.ndarray) -> np.ndarray:
    """Returns some rows of a component of a table, as a numpy array."""
    return tf.gather(component, rows).numpy()


def write_rows(
    component: tf.Variable, rows: np.ndarray, values: np.ndarray
) -> None:
    """Replaces some rows of a component of a table, and no others."""
    component.scatter_nd_update(rows[:, None], values)


def present_value(variable: keras.Variable) -> np.ndarray:
    """Returns what a variable contains while a step is traced."""
    with tf.init_scope():
        return np.asarray(variable.numpy())
