"""The weights of the slots that were read."""

from keras import ops

from keras_pkm.ops.tensors import Tensor


def read_weights(scores: Tensor) -> Tensor:
    """Returns the softmax of each head's scores.

    Args:
        scores: float32 tensor of shape `(tokens, num_heads, top_k)`, sorted by
            descending score.
    """
    # The first score is the largest. (Keras' own softmax warns about axes of
    # length 1, which top_k=1 has.)
    weights = ops.exp(scores - scores[..., :1])
    return weights / ops.sum(weights, axis=-1, keepdims=True)
