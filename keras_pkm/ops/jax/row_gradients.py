"""Gradients, which are dense arrays on JAX.

A row of a table that no token has read has a gradient of zero. XLA compiles
the step, and needs to know all shapes; the number of rows that a batch reads is
not known.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import keras


def reduce_gradients(
    gradients: Sequence[jax.Array], of_tables: Sequence[bool], reduction: str
) -> list[jax.Array]:
    """Returns the gradients: arrays are summed over devices by JAX."""
    return list(gradients)


def entries(gradient: jax.Array) -> jax.Array:
    """Returns the entries of a gradient."""
    return gradient


def with_entries(gradient: jax.Array, entries: jax.Array) -> jax.Array:
    """Returns a gradient with other entries."""
    return entries


def keep_rows(gradient: jax.Array, kept: keras.Variable) -> jax.Array:
    """Sets rows of a table's gradient to zero.

    Args:
        gradient: Array of shape `(num_slots, width)`.
        kept: bool variable of shape `(num_slots,)`: the rows to keep.
    """
    return jnp.where(kept.value[:, None], gradient, 0)
