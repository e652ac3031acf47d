"""Computes functions of many rows block by block."""

from collections.abc import Callable

import tensorflow as tf


def in_blocks(
    function: Callable[..., tf.Tensor],
    size: int | tf.Tensor,
    *tensors: tf.Tensor,
    parallel_iterations: int = 1,
) -> tf.Tensor:
    """Computes a function of rows, one block of rows at a time.

    Args:
        function: A function of tensors of shape `(size, ...)` that returns a
            float32 tensor of shape `(size, width)`. The last block is padded
            with zeros.
        size: int, or int32 scalar. Number of rows of a block.
        *tensors: tensors of shape `(rows, columns)`.
        parallel_iterations: int. Number of blocks that a graph computes in
            parallel.

    Returns:
        float32 tensor of shape `(rows, width)`.
    """
    rows = tf.shape(tensors[0])[0]
    # At least one block: without any, the output's shape would be unknown.
    missing = tf.maximum(size, rows + -rows % size) - rows
    blocks = [
        tf.reshape(
            tf.pad(tensor, [[0, missing], [0, 0]]),
            (-1, size, tensor.shape[1]),
        )
        for tensor in tensors
    ]
    outputs = tf.map_fn(
        lambda block: function(*block),
        blocks,
        fn_output_signature="float32",
        parallel_iterations=parallel_iterations,
    )
    return tf.reshape(outputs, (-1, outputs.shape[-1]))[:rows]
