"""Padding masks, one entry for each token."""

import tensorflow as tf
from keras import ops


def flatten_padding_mask(
    inputs: tf.Tensor,
    mask: tf.Tensor | None,
    padding_mask: tf.Tensor | None = None,
) -> tf.Tensor | None:
    """Returns a padding mask as booleans of shape `(tokens,)`.

    Args:
        inputs: `(..., dim)`.
        mask: `(...)`, true or 1 for tokens, false or 0 for padding; or None.
        padding_mask: another name of `mask`. If both are given, this one is
            used: Keras passes the mask that inputs carry as `mask`.

    Raises:
        ValueError: the shapes do not fit.
    """
    name = "mask" if padding_mask is None else "padding_mask"
    if padding_mask is None:
        padding_mask = mask
    if padding_mask is None:
        return None
    expected = tuple(inputs.shape[:-1])
    received = tuple(padding_mask.shape)
    if len(received) != len(expected) or any(
        None not in sizes and sizes[0] != sizes[1]
        for sizes in zip(received, expected)
    ):
        raise ValueError(
            f"`{name}` must have the shape of `inputs` without the "
            f"last dimension, {expected}. Received: {name} of shape "
            f"{received}."
        )
    return ops.reshape(ops.cast(padding_mask, "bool"), (-1,))
