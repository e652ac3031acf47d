"""The order of training rows, from a seed and a position alone."""

import numpy as np
import tensorflow as tf

# Batches whose rows are sorted by length together: enough for little padding.
POOL_STEPS = 64


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


def rows_of_like_length(
    lengths: tf.Tensor,
    batch_size: int,
    seed: int,
    step: tf.Tensor,
    last_step: int,
) -> tf.Tensor:
    """As `shuffled_rows`, with rows of about the same length in a batch.

    Each pool of `POOL_STEPS` batches holds the rows that it would hold with
    `shuffled_rows`. They are sorted by length before they are cut into batches,
    whose order is random again.

    Args:
        lengths: int tensor of shape `(num_rows,)`. Of each row.
        batch_size: int. Rows of a batch.
        seed: int. Of the order.
        step: int64 scalar. The batch's number.
        last_step: int. The number of batches in all: the last pool may be
            smaller.

    Returns:
        int64 tensor of shape `(batch_size,)`.
    """
    pool, place = step // POOL_STEPS, step % POOL_STEPS
    steps = tf.minimum(np.int64(POOL_STEPS), last_step - pool * POOL_STEPS)
    rows, _ = shuffled_rows(
        int(lengths.shape[0]), POOL_STEPS * batch_size, seed, pool
    )
    rows = rows[: steps * batch_size]
    rows = tf.gather(rows, tf.argsort(tf.gather(lengths, rows), stable=True))
    place = tf.raw_ops.RandomIndexShuffle(
        index=place, seed=tf.stack([seed, pool, 0]), max_index=steps - 1
    )
    first = place * batch_size
    return tf.ensure_shape(rows[first : first + batch_size], [batch_size])


def seeds(seed: int, numbers: tf.Tensor) -> tf.Tensor:
    """Returns one seed for each number, of shape `(len(numbers), 2)`."""
    return tf.stack([tf.fill(tf.shape(numbers), np.int64(seed)), numbers], 1)
