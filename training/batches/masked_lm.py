"""Batches of masked sequences for `keras_hub.models.BertMaskedLM`.

Every batch is a pair of features and labels with weights:

- features `"token_ids"`, `"segment_ids"` (all 0) and `"padding_mask"` of shape
  `(batch_size, sequence_length)`, and `"mask_positions"` of shape
  `(batch_size, mask_selection_length)`, all int32;
- the ids before masking and their weights, int32 and float32, of the shape of
  `"mask_positions"`. Weight 0 marks what was not selected.
"""

import numpy as np
import tensorflow as tf

from training.batches.masking import Masking
from training.batches.masking import mask_tokens
from training.batches.row_order import seeds
from training.batches.row_order import shuffled_rows
from training.batches.step_batches import step_batches


def training_batches(
    packed: np.ndarray,
    *,
    batch_size: int,
    seed: int,
    masking: Masking,
    first_step: int = 0,
    num_steps: int | None = None,
) -> tf.data.Dataset:
    """Returns shuffled batches with new masks in each epoch.

    What stands at a position of the stream, and its masks, follow from the
    seed and the position alone: a run that continues at `first_step` sees
    exactly what an uninterrupted one sees, and starts at once. An epoch's last
    batch is filled from the next epoch.

    Args:
        packed: int32 array or memory map of shape `(rows, sequence_length)`.
        batch_size: int. Sequences in a batch.
        seed: int. Of the order and the masks.
        masking: `Masking`.
        first_step: int. The number of batches to leave out. Defaults to `0`.
        num_steps: int or None. The number of batches. Defaults to `None`:
            without end.
    """
    num_rows = packed.shape[0]

    def batch(step):
        rows, positions = shuffled_rows(num_rows, batch_size, seed, step)
        token_ids = _read_rows(packed, rows, batch_size)
        return _masked_lm(token_ids, seeds(seed, positions), masking)

    last_step = np.iinfo(np.int64).max // batch_size
    if num_steps is not None:
        last_step = first_step + num_steps
    steps = tf.data.Dataset.range(first_step, last_step)
    return step_batches(steps, batch)


def held_out_batches(
    packed: np.ndarray, *, batch_size: int, seed: int, masking: Masking
) -> tf.data.Dataset:
    """Returns each row once, in order, with the same masks every time.

    The last batch is filled up with rows of `[PAD]`, whose `"padding_mask"`
    and weights are 0. So nothing is dropped or counted twice, and all batches
    have one shape, which the replicas of a `tf.distribute` strategy can share.

    Args:
        packed: int32 array or memory map of shape `(rows, sequence_length)`.
        batch_size: int. Sequences in a batch.
        seed: int. Of the masks.
        masking: `Masking`.
    """
    num_rows = packed.shape[0]

    def batch(step):
        rows = step * batch_size + tf.range(batch_size, dtype=tf.int64)
        token_ids = _read_rows(
            packed, tf.minimum(rows, num_rows - 1), batch_size
        )
        is_row = rows[:, None] < num_rows
        token_ids = tf.where(is_row, token_ids, masking.pad_token_id)
        return _masked_lm(token_ids, seeds(seed, rows), masking)

    num_batches = -(-num_rows // batch_size)
    return step_batches(tf.data.Dataset.range(num_batches), batch)


def _read_rows(
    packed: np.ndarray, rows: tf.Tensor, batch_size: int
) -> tf.Tensor:
    """Reads rows when the graph runs: the corpus is no part of the graph."""
    token_ids = tf.numpy_function(
        lambda rows: np.asarray(packed[rows], np.int32),
        [rows],
        tf.int32,
        stateful=False,
    )
    return tf.ensure_shape(token_ids, [batch_size, packed.shape[1]])


def _masked_lm(token_ids, seeds, masking):
    masked_ids, positions, label_ids, weights = mask_tokens(
        token_ids, seeds, masking
    )
    padding_mask = token_ids != masking.pad_token_id
    features = {
        "token_ids": masked_ids,
        "segment_ids": tf.zeros_like(token_ids),
        "padding_mask": tf.cast(padding_mask, tf.int32),
        "mask_positions": positions,
    }
    return features, label_ids, weights
