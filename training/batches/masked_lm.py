"""Batches of masked sequences for `keras_hub.models.BertMaskedLM`.

Every batch is a pair of features and labels with weights:

- features `"token_ids"`, `"segment_ids"` (all 0) and `"padding_mask"` of shape
  `(batch_size, sequence_length)`, and `"mask_positions"` of shape
  `(batch_size, mask_selection_length)`, all int32;
- the ids before masking and their weights, int32 and float32, of the shape of
  `"mask_positions"`. Weight 0 marks unused entries.
"""

import numpy as np
import tensorflow as tf

from training.batches.masking import Masking
from training.batches.masking import mask_tokens
from training.batches.packed_rows import ordered_batches
from training.batches.packed_rows import shuffled_batches
from training.batches.row_order import seeds


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

    The row at each position of the stream, and its masks, depend only on the
    seed and the position. So a run that resumes at `first_step` gets exactly
    the batches of an uninterrupted one, and starts without delay. The last
    batch of an epoch is filled from the next epoch.
    """
    return shuffled_batches(
        packed,
        lambda token_ids, positions: _masked_lm(
            token_ids, seeds(seed, positions), masking
        ),
        batch_size=batch_size,
        seed=seed,
        first_step=first_step,
        num_steps=num_steps,
    )


def held_out_batches(
    packed: np.ndarray, *, batch_size: int, seed: int, masking: Masking
) -> tf.data.Dataset:
    """Returns each row once, in order, with the same masks every time.

    The last batch is filled up with rows of `[PAD]`, whose `"padding_mask"`
    and weights are 0. So nothing is dropped or counted twice, and all batches
    have the same shape, which the replicas of a `tf.distribute` strategy can
    share.
    """
    return ordered_batches(
        packed,
        lambda token_ids, rows: _masked_lm(
            token_ids, seeds(seed, rows), masking
        ),
        batch_size=batch_size,
        filler_id=masking.pad_token_id,
    )


def _masked_lm(
    token_ids: tf.Tensor, seeds: tf.Tensor, masking: Masking
) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
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
