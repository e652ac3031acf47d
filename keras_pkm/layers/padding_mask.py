"""Padding masks, one entry for each token."""

from keras import ops

from keras_pkm.ops.tensors import Tensor


def flatten_mask(inputs: Tensor, mask: Tensor | None) -> Tensor | None:
    """Returns a padding mask as booleans of shape `(tokens,)`.

    Args:
        inputs: `(..., dim)`.
        mask: `(...)`, true or 1 for tokens, false or 0 for padding; or None.

    Raises:
        ValueError: the shapes do not fit.
    """
    if mask is None:
        return None
    expected = tuple(inputs.shape[:-1])
    received = tuple(mask.shape)
    if len(received) != len(expected) or any(
        None not in sizes and sizes[0] != sizes[1]
        for sizes in zip(received, expected)
    ):
        raise ValueError(
            "`mask` must have the shape of `inputs` without the last "
            f"dimension, {expected}. Received: mask of shape {received}."
        )
    return ops.reshape(ops.cast(mask, "bool"), (-1,))
