"""Reads and replaces rows of a table outside of steps."""

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
