"""The embedding bag in bounded memory, forward and backward."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras

# Reads of each token that are added up in one pass over the outputs.
_UNROLLED = 32
# 8 MiB of rows are in memory at a time. On GPUs XLA fuses reads with what they
# are for, and none are; blocks would take up to twice as long.
_BLOCK_FLOATS = 2**21


def embedding_bag(
    table: Any, slots: jax.Array, weights: jax.Array, implementation: str
) -> jax.Array:
    """See `keras_pkm.ops.embedding_bag`."""
    return _compiled_sum(
        jnp.asarray(
            table.value if isinstance(table, keras.Variable) else table
        ),
        jnp.asarray(slots),
        jnp.asarray(weights, "float32"),
    )


def search(
    find: Callable[[jax.Array, jax.Array], Any],
    queries: jax.Array,
    sub_keys: jax.Array,
    implementation: str,
) -> tuple[jax.Array, jax.Array]:
    """Returns what `find` returns, with the gradients that JAX derives."""
    # By default GPUs and TPUs multiply float32 in fewer bits, and other slots
    # would be found.
    with jax.default_matmul_precision("highest"):
        return find(queries, sub_keys)


@jax.custom_vjp
def _weighted_sum(
    table: jax.Array, slots: jax.Array, weights: jax.Array
) -> jax.Array:
    """`sum_j weights[t, j] * table[slots[t, j]]`, `(tokens, width)`."""
    reads = slots.shape[1]

    def add(start: Any, count: int, sums: jax.Array) -> jax.Array:
        part = jax.lax.dynamic_slice_in_dim(slots, start, count, axis=1)
        factors = jax.lax.dynamic_slice_in_dim(weights, start, count, axis=1)
        for j in range(count):
            sums += factors[:, j, None] * _rows(table, part[:, j])
        return sums

    step = min(_UNROLLED, reads)
    rest = reads % step
    sums = jnp.zeros((slots.shape[0], table.shape[1]), table.dtype)
    return jax.lax.fori_loop(
        0,
        reads // step,
        lambda number, sums: add(rest + number * step, step, sums),
        add(0, rest, sums),
    )


def _forward(
    table: jax.Array, slots: jax.Array, weights: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    return _weighted_sum(table, slots, weights), (table, slots, weights)


def _backward(
    saved: tuple[jax.Array, ...], upstream: jax.Array
) -> tuple[jax.Array, None, jax.Array]:
    """Gradients of the table, dense, and of the weights.

    They are computed for a block of tokens at a time.
    """
    table, slots, weights = saved

    def one_block(
        of_table: jax.Array, block: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, jax.Array]:
        slots, weights, upstream = block
        of_weights = jnp.einsum(
            "tw,tjw->tj", upstream, _rows(table, slots), precision="highest"
        )
        of_rows = weights[:, :, None] * upstream[:, None]
        of_table = of_table.at[slots].add(
            of_rows, mode="drop", wrap_negative_indices=False
        )
        return of_table, of_weights

    blocks = _blocks((slots, weights, upstream), table.shape[1])
    of_table, of_weights = jax.lax.scan(
        one_block, jnp.zeros_like(table), blocks
    )
    reads = slots.shape[1]
    return of_table, None, of_weights.reshape(-1, reads)[: slots.shape[0]]


_weighted_sum.defvjp(_forward, _backward)
# Calls outside of a compiled function would compile the loops each time.
_compiled_sum = jax.jit(_weighted_sum)


def _rows(table: jax.Array, slots: jax.Array) -> jax.Array:
    # NaN for a slot that does not exist.
    return table.at[slots].get(mode="fill", wrap_negative_indices=False)


def _blocks(arrays: tuple[jax.Array, ...], width: int) -> list[jax.Array]:
    """Divides arrays with a row for each token into blocks of rows.

    The last block is padded with zeros: reads of slot 0 with the weight 0.
    """
    tokens, reads = arrays[0].shape
    most = max(1, _BLOCK_FLOATS // (reads * width))
    if jax.default_backend() == "gpu":
        most = max(1, tokens)
    count = max(1, math.ceil(tokens / most))
    size = math.ceil(tokens / count)
    missing = count * size - tokens
    return [
        jnp.pad(array, ((0, missing), (0, 0))).reshape(
            count, size, array.shape[1]
        )
        for array in arrays
    ]
