"""Reads and replaces rows of a table outside of steps."""

import keras
import numpy as np
import torch


def read_rows(component: keras.Variable, rows: np.ndarray) -> np.ndarray:
    """Returns some rows of a table, as a numpy array."""
    return component.value.detach()[_places(component, rows)].cpu().numpy()


@torch.no_grad()
def write_rows(
    component: keras.Variable, rows: np.ndarray, values: np.ndarray
) -> None:
    """Replaces some rows of a table, and no others."""
    table = component.value
    table[_places(component, rows)] = torch.from_numpy(values).to(table)


def _places(component: keras.Variable, rows: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(rows).to(component.value.device)


def present_value(variable: keras.Variable) -> np.ndarray:
    """Returns what a variable contains."""
    return variable.value.detach().cpu().numpy()
