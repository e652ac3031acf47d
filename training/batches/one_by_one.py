"""Batches in which each token is masked alone, for pseudo-perplexity."""

import numpy as np
import tensorflow as tf

from training.batches.masking import Masking
from training.batches.step_batches import step_batches


def one_by_one(
    packed: np.ndarray, masking: Masking, batch_size: int
) -> tuple[tf.data.Dataset, np.ndarray]:
    """Returns a masked row for each token, for pseudo-perplexity.

    The second result is the number of each token's row.

    Pseudo-perplexity is the exponential of the mean of -ln p(token | all
    others): Salazar et al., "Masked Language Model Scoring" (2020). It takes
    one pass over a row for each of its tokens.
    """
    special = np.array(masking.special_token_ids)
    rows, positions = np.nonzero(~np.isin(packed, special))
    count = len(rows)

    def read(step: np.ndarray) -> tuple[np.ndarray, ...]:
        places = step * batch_size + np.arange(batch_size)
        weights = (places < count).astype("float32")
        places = np.minimum(places, count - 1)
        token_ids = np.array(packed[rows[places]], "int32")
        column = positions[places].astype("int32")
        labels = token_ids[np.arange(batch_size), column]
        token_ids[np.arange(batch_size), column] = masking.mask_token_id
        # What fills the last batch is padding, which memories do not count.
        token_ids[weights == 0] = masking.pad_token_id
        return token_ids, column[:, None], labels[:, None], weights[:, None]

    def batch(
        step: tf.Tensor,
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        token_ids, column, labels, weights = tf.numpy_function(
            read,
            [step],
            [tf.int32, tf.int32, tf.int32, tf.float32],
            stateful=False,
        )
        token_ids.set_shape((batch_size, packed.shape[1]))
        for tensor in (column, labels, weights):
            tensor.set_shape((batch_size, 1))
        features = {
            "token_ids": token_ids,
            "segment_ids": tf.zeros_like(token_ids),
            "padding_mask": tf.cast(
                token_ids != masking.pad_token_id, tf.int32
            ),
            "mask_positions": column,
        }
        return features, labels, weights

    steps = tf.data.Dataset.range(-(-count // batch_size))
    return step_batches(steps, batch), rows
