"""The order of training rows, as a function of seed and position."""

import numpy as np
import tensorflow as tf

# Number of batches whose rows are sorted by length together. It is large enough
# to leave little padding.
POOL_STEPS = 64

# With the default of 4, a seed that consists of small numbers hardly shuffles.
_ROUNDS = 16


def shuffled_rows(
    num_rows: int, batch_size: int, seed: int, step: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the rows of one batch of an endless stream of epochs.

    The row at each position of the stream depends only on the seed and the
    position. So a run that resumes at a step gets exactly the batches of an
    uninterrupted one, and starts without delay. The last batch of an epoch is
    filled from the next epoch.
    """
    positions = step * batch_size + tf.range(batch_size, dtype=tf.int64)
    # The raw operation, because `tf.random.experimental.index_shuffle` does not
    # take one seed for each index, although its documentation says so.
    rows = tf.raw_ops.RandomIndexShuffle(
        index=positions % num_rows,
        seed=tf.pad(seeds(seed, positions // num_rows), [[0, 0], [0, 1]]),
        max_index=tf.fill([batch_size], np.int64(num_rows - 1)),
        rounds=_ROUNDS,
    )
    return rows, positions


def rows_of_like_length(
    lengths: tf.Tensor,
    batch_size: int,
    seed: int,
    step: tf.Tensor,
    last_step: int,
) -> tf.Tensor:
    """Like `shuffled_rows`, with rows of similar length in each batch.

    Each pool of `POOL_STEPS` batches, or of an epoch if that is shorter,
    contains the same rows as with `shuffled_rows`. They are sorted by length
    and cut into batches, which are then shuffled.
    """
    num_rows = int(lengths.shape[0])
    # With more, batches of like length would have the same row several times.
    size = max(1, min(POOL_STEPS, num_rows // batch_size))
    pool, place = step // size, step % size
    steps = tf.minimum(np.int64(size), last_step - pool * size)
    rows, _ = shuffled_rows(num_rows, size * batch_size, seed, pool)
    rows = rows[: steps * batch_size]
    rows = tf.gather(rows, tf.argsort(tf.gather(lengths, rows), stable=True))
    place = tf.raw_ops.RandomIndexShuffle(
        index=place,
        seed=tf.stack([seed, pool, 0]),
        max_index=steps - 1,
        rounds=_ROUNDS,
    )
    first = place * batch_size
    return tf.ensure_shape(rows[first : first + batch_size], [batch_size])


def seeds(seed: int, numbers: tf.Tensor) -> tf.Tensor:
    """Returns one seed for each number, of shape `(len(numbers), 2)`."""
    return tf.stack([tf.fill(tf.shape(numbers), np.int64(seed)), numbers], 1)
