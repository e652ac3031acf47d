"""Reads packed rows, in an order that depends only on the step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from training.batches.row_order import shuffled_rows
from training.batches.step_batches import step_batches


def shuffled_batches(
    packed: np.ndarray,
    make_batch: Callable[[tf.Tensor, tf.Tensor], Any],
    *,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    num_steps: int | None = None,
) -> tf.data.Dataset:
    """Returns shuffled batches of all rows, epoch after epoch.

    The row at each position of the stream depends only on the seed and the
    position. So a run that resumes at `first_step` gets exactly the batches of
    an uninterrupted one, and starts without delay. The last batch of an epoch
    is filled from the next epoch.
    """

    def batch(step: tf.Tensor) -> Any:
        rows, positions = shuffled_rows(packed.shape[0], batch_size, seed, step)
        return make_batch(_read(packed, rows, batch_size), positions)

    last_step = np.iinfo(np.int64).max // batch_size
    if num_steps is not None:
        last_step = first_step + num_steps
    return step_batches(tf.data.Dataset.range(first_step, last_step), batch)


def ordered_batches(
    packed: np.ndarray,
    make_batch: Callable[[tf.Tensor, tf.Tensor], Any],
    *,
    batch_size: int,
    filler_id: int,
) -> tf.data.Dataset:
    """Returns each row once, in order.

    The last batch is filled up with rows of one id. So nothing is dropped or
    counted twice, and all batches have the same shape, which the replicas of a
    `tf.distribute` strategy can share.
    """
    num_rows = packed.shape[0]

    def batch(step: tf.Tensor) -> Any:
        rows = step * batch_size + tf.range(batch_size, dtype=tf.int64)
        token_ids = _read(packed, tf.minimum(rows, num_rows - 1), batch_size)
        token_ids = tf.where(rows[:, None] < num_rows, token_ids, filler_id)
        return make_batch(token_ids, rows)

    num_batches = -(-num_rows // batch_size)
    return step_batches(tf.data.Dataset.range(num_batches), batch)


def _read(packed: np.ndarray, rows: tf.Tensor, batch_size: int) -> tf.Tensor:
    """Reads rows when the graph runs; the graph does not contain the corpus."""
    token_ids = tf.numpy_function(
        lambda rows: np.asarray(packed[rows], np.int32),
        [rows],
        tf.int32,
        stateful=False,
    )
    return tf.ensure_shape(token_ids, [batch_size, packed.shape[1]])
