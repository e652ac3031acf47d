"""Updates of variables in a step that may be skipped."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import torch


@torch.no_grad()
def update_rows(
    tables: tuple[keras.Variable, ...],
    gradient: torch.Tensor,
    rule: Callable[..., tuple[torch.Tensor, ...]],
) -> None:
    """Replaces the rows of some tables that were read, in place.

    Args: see `keras_pkm.ops.backend.Backend.update_rows`.
    """
    values = gradient._values()
    read = (values != 0).any(dim=-1)
    rows = gradient._indices()[0][read]
    old = [table.value[rows] for table in tables]
    for table, new in zip(tables, rule(values[read], *old)):
        table.value[rows] = new


@torch.no_grad()
def update_if(
    condition: torch.Tensor,
    update: Callable[[keras.Variable, Any, torch.Tensor, torch.Tensor], None],
    variables: Sequence[keras.Variable],
    gradients: Sequence[torch.Tensor],
    rate: torch.Tensor,
    state: Sequence[keras.Variable],
) -> None:
    """Updates variables if a condition holds.

    Args: see `keras_pkm.ops.backend.Backend.update_if`.
    """
    if bool(condition):
        for variable, gradient in zip(variables, gradients):
            update(variable, variable, gradient, rate)


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that torch's compiler leaves alone."""
    return torch.compiler.disable(function)
