"""How much each slot that was read counts."""

import tensorflow as tf
from keras import ops


def read_weights(scores: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Returns the softmax of each head's scores, and zeros at padding.

    Args:
        scores: float32 tensor of shape `(tokens, num_heads, top_k)`, sorted by
            descending score.
        mask: optional bool tensor of shape `(tokens,)`, true at tokens.
    """
    # The first score is the largest. (Keras' own softmax warns of axes of
    # length 1, as with top_k=1.)
    weights = ops.exp(scores - scores[..., :1])
    weights = weights / ops.sum(weights, axis=-1, keepdims=True)
    if mask is None:
        return weights
    return ops.where(mask[:, None, None], weights, 0)
