"""Steps that change variables, and gradients in them."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import torch


def compiled(
    step: Callable[..., list[torch.Tensor]],
    variables: Sequence[keras.Variable],
    strategy: Any,
    inputs: Any = None,
) -> Callable[..., list[torch.Tensor]]:
    """Returns a step that keeps nothing for gradients, but for its own.

    As in Keras, nothing is compiled unless somebody asks for it.

    Args: see `keras_pkm.ops.backend.Backend.compiled`.
    """
    return torch.no_grad()(step)


@torch.enable_grad()
def gradients(
    compute: Callable[[], torch.Tensor], variables: Sequence[keras.Variable]
) -> list[torch.Tensor | None]:
    """Returns the gradients of a scalar.

    Args:
        compute: A function that returns the scalar.
        variables: The variables; they need not be trainable.
    """
    values = [variable.value for variable in variables]
    needed = [value.requires_grad for value in values]
    for value in values:
        value.requires_grad_(True)
    try:
        scalar = compute()
        if not scalar.requires_grad:
            return [None] * len(values)
        return list(torch.autograd.grad(scalar, values, allow_unused=True))
    finally:
        for value, was_needed in zip(values, needed):
            value.requires_grad_(was_needed)
