"""Combines the padding mask and the caller's mask for self-attention."""

from keras import ops

from keras_pkm.ops.tensors import Tensor


def merge_masks(
    padding_mask: Tensor | None, attention_mask: Tensor | None
) -> Tensor | None:
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
