"""Combines the padding mask and the caller's mask for self-attention."""

import tensorflow as tf
from keras import ops


def merge_masks(
    padding_mask: tf.Tensor | None, attention_mask: tf.Tensor | None
) -> tf.Tensor | None:
    """Returns the mask of positions that both masks allow.

    Its shape is `(batch, 1 or length, length)`; `None` if both are `None`.
    """
    if padding_mask is not None:
        padding_mask = ops.cast(ops.expand_dims(padding_mask, 1), "int32")
    if attention_mask is None:
        return padding_mask
    attention_mask = ops.cast(attention_mask, "int32")
    if padding_mask is None:
        return attention_mask
    return ops.minimum(padding_mask, attention_mask)
