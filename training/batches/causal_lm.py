"""Batches of running text for `keras_hub.models.CausalLM`.

Every batch is a pair of features and labels with weights, all of shape
`(batch_size, sequence_length)`:

- features `"token_ids"` and `"padding_mask"`, int32;
- the token after each, int32, and its weight, float32. Weight 0 marks the last
  token, which has no next one, and padding.
"""

import numpy as np
import tensorflow as tf

from training.batches.packed_rows import ordered_batches
from training.batches.packed_rows import shuffled_batches


def training_batches(
    packed: np.ndarray,
    *,
    batch_size: int,
    seed: int,
    end_id: int,
    first_step: int = 0,
    num_steps: int | None = None,
) -> tf.data.Dataset:
    """Returns shuffled batches of all rows, epoch after epoch.

    The content of a batch depends only on the seed and its step.
    """
    return shuffled_batches(
        packed,
        lambda token_ids, _: next_tokens(token_ids, end_id),
        batch_size=batch_size,
        seed=seed,
        first_step=first_step,
        num_steps=num_steps,
    )


def held_out_batches(
    packed: np.ndarray, *, batch_size: int, end_id: int
) -> tf.data.Dataset:
    """Returns each row once, in order.

    The last batch is filled up with rows whose weights are 0.
    """
    return ordered_batches(
        packed,
        lambda token_ids, _: next_tokens(token_ids, end_id),
        batch_size=batch_size,
        filler_id=end_id,
    )


def next_tokens(
    token_ids: tf.Tensor, end_id: int
) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    """Returns features, labels and weights of rows of running text."""
    is_end = tf.cast(token_ids == end_id, tf.int32)
    to_the_last = tf.math.cumprod(is_end, axis=1, reverse=True)
    follows_an_end = tf.pad(is_end[:, :-1], [[0, 0], [1, 0]], constant_values=1)
    padding_mask = 1 - to_the_last * follows_an_end
    features = {"token_ids": token_ids, "padding_mask": padding_mask}
    labels = tf.pad(token_ids[:, 1:], [[0, 0], [0, 1]], constant_values=end_id)
    weights = tf.pad(padding_mask[:, 1:], [[0, 0], [0, 1]])
    return features, labels, tf.cast(weights, tf.float32)
