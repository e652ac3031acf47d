"""The order of training rows, from a seed and a position alone."""

import numpy as np
import tensorflow as tf


def shuffled_rows(
    num_rows: int, batch_size: int, seed: int, step: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the rows of one batch of an endless stream of epochs.

    What stands at a position of the stream follows from the seed and the
    position alone: a run that continues at a step sees exactly what an
    uninterrupted one sees, and starts at once. An epoch's last batch is filled
    from the next epoch.

    Args:
        num_rows: int. Rows of an epoch.
        batch_size: int. Rows of a batch.
        seed: int. Of the order.
        step: int64 scalar. The batch's number.

    Returns:
        A tuple `(rows, positions)`, int64 tensors of shape `(batch_size,)`.
    """
    positions = step * batch_size + tf.range(batch_size, dtype=tf.int64)
    # The op of `tf.random.experimental.index_shuffle`, which does not take one
    # seed for each index, as its documentation says it does.
    rows = tf.raw_ops.RandomIndexShuffle(
        index=positions % num_rows,
        seed=tf.pad(seeds(seed, positions // num_rows), [[0, 0], [0, 1]]),
        max_index=tf.fill([batch_size], np.int64(num_rows - 1)),
    )
    return rows, positions


def seeds(seed: int, numbers: tf.Tensor) -> tf.Tensor:
    """Returns one seed for each number, of shape `(len(numbers), 2)`."""
    return tf.stack([tf.fill(tf.shape(numbers), np.int64(seed)), numbers], 1)
