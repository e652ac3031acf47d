"""Reads and replaces rows of a table outside of steps."""

import jax
import keras
import numpy as np


def read_rows(component: keras.Variable, rows: np.ndarray) -> np.ndarray:
    """Returns some rows of a table, as a numpy array."""
    return np.asarray(component.value[rows])


def write_rows(
    component: keras.Variable, rows: np.ndarray, values: np.ndarray
) -> None:
    """Replaces some rows of a table, and no others."""
    component.assign(component.value.at[rows].set(values))


def present_value(variable: keras.Variable) -> np.ndarray | None:
    """Returns what a variable contains, unless `fit` holds its value."""
    value = variable._value
    if value is None or isinstance(value, jax.core.Tracer):
        return None
    return np.asarray(value)
