"""The three sums of an embedding bag by TensorFlow's own operations.

They run anywhere, and hold `tokens * reads * width` floats at once.
"""

import tensorflow as tf

from keras_pkm.ops.sorted_rows import sort_rows


def weighted_sum(
    handle: tf.Tensor,
    shape: tf.TensorShape,
    slots: tf.Tensor,
    weights: tf.Tensor,
) -> tf.Tensor:
    """Returns `sum_j weights[t, j] * table[slots[t, j]]`, `(tokens, width)`.

    Args:
        handle: resource handle of the float32 table.
        shape: the table's shape, `(num_slots, width)`.
        slots: int32 tensor of shape `(tokens, reads)`.
        weights: float32 tensor of shape `(tokens, reads)`.
    """
    del shape
    return tf.einsum("tj,tjw->tw", weights, gather(handle, slots))


def weights_gradient(
    handle: tf.Tensor,
    shape: tf.TensorShape,
    slots: tf.Tensor,
    upstream: tf.Tensor,
) -> tf.Tensor:
    """Returns `upstream[t] · table[slots[t, j]]`, `(tokens, reads)`.

    Args:
        handle: resource handle of the float32 table.
        shape: the table's shape, `(num_slots, width)`.
        slots: int32 tensor of shape `(tokens, reads)`.
        upstream: float32 tensor of shape `(tokens, width)`.
    """
    del shape
    return tf.einsum("tw,tjw->tj", upstream, gather(handle, slots))


def table_gradient(
    shape: tf.TensorShape,
    slots: tf.Tensor,
    weights: tf.Tensor,
    upstream: tf.Tensor,
) -> tf.IndexedSlices:
    """Returns the rows of `readsᵀ · upstream` that were read, each once.

    Args:
        shape: the table's shape, `(num_slots, width)`.
        slots: int32 tensor of shape `(tokens, reads)`.
        weights: float32 tensor of shape `(tokens, reads)`.
        upstream: float32 tensor of shape `(tokens, width)`.

    Returns:
        `tf.IndexedSlices`, their rows ascending.
    """
    rows, segments, tokens, weights = sort_reads(slots, weights)
    values = weights[:, None] * tf.gather(upstream, tokens)
    values = tf.math.segment_sum(values, segments)
    return tf.IndexedSlices(values, rows, tf.constant(list(shape)))


def gather(handle: tf.Tensor, slots: tf.Tensor) -> tf.Tensor:
    """Returns the table's rows `slots`."""
    return tf.raw_ops.ResourceGather(
        resource=handle, indices=slots, dtype=tf.float32
    )


def sort_reads(
    slots: tf.Tensor, weights: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Brings all reads into the order of their slots.

    Args:
        slots: int32 tensor of shape `(tokens, reads)`.
        weights: float32 tensor of shape `(tokens, reads)`.

    Returns:
        A tuple `(rows, segments, tokens, weights)`: the slots read, each once,
        ascending; and for each read, in that order, the position of its slot
        in `rows`, its token, and its weight.
    """
    rows, segments, order = sort_rows(tf.reshape(slots, [-1]))
    weights = tf.gather(tf.reshape(weights, [-1]), order)
    return rows, segments, order // slots.shape[1], weights
