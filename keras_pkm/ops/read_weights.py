"""The weights of the slots that were read."""

import tensorflow as tf
from keras import ops


def read_weights(scores: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Returns the softmax of each head's scores, with zeros at padding.

    Args:
        scores: float32 tensor of shape `(tokens, num_heads, top_k)`, sorted by
            descending score.
        mask: optional bool tensor of shape `(tokens,)`, true at tokens.
    """
    # The first score is the largest. (Keras' own softmax warns about axes of
    # length 1, which top_k=1 has.)
    weights = ops.exp(scores - scores[..., :1])
    weights = weights / ops.sum(weights, axis=-1, keepdims=True)
    if mask is None:
        return weights
    return ops.where(mask[:, None, None], weights, 0)
