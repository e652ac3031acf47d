"""Updates of variables in a step that may be skipped."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import keras


def update_rows(
    tables: tuple[keras.Variable, ...],
    gradient: jax.Array,
    rule: Callable[..., tuple[jax.Array, ...]],
) -> None:
    """Replaces the rows of some tables that were read.

    It computes the new rows of whole tables, and takes those whose gradient is
    not all zero. The others are unchanged, bit for bit.

    Args:
        tables: see `keras_pkm.ops.backend.Backend.update_rows`.
        gradient: Array of shape `(num_slots, width)`.
        rule: see there.
    """
    read = jnp.any(gradient != 0, axis=-1, keepdims=True)
    old = [table.value for table in tables]
    for table, before, after in zip(tables, old, rule(gradient, *old)):
        table.assign(jnp.where(read, after, before))


def update_if(
    condition: jax.Array,
    update: Callable[[keras.Variable, Any, jax.Array, jax.Array], None],
    variables: Sequence[keras.Variable],
    gradients: Sequence[jax.Array],
    rate: jax.Array,
    state: Sequence[keras.Variable],
) -> None:
    """Updates variables, and takes their new values if a condition holds.

    XLA fuses the choice with the update.

    Args: see `keras_pkm.ops.backend.Backend.update_if`.
    """
    changed = [*variables, *state]
    before = [variable.value for variable in changed]
    for variable, gradient in zip(variables, gradients):
        update(variable, variable, gradient, rate)
    for variable, old in zip(changed, before):
        if variable.value is not old:
            variable.assign(jnp.where(condition, variable.value, old))


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function as it is."""
    return function
