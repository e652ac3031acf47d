"""Padding masks, one entry for each token."""

import tensorflow as tf
from keras import ops


def flatten_padding_mask(
    inputs: tf.Tensor, padding_mask: tf.Tensor | None
) -> tf.Tensor | None:
    """Returns a padding mask as booleans of shape `(tokens,)`.

    Args:
        inputs: `(..., dim)`.
        padding_mask: `(...)`, true or 1 for tokens, false or 0 for padding; or
            None.

    Raises:
        ValueError: the shapes do not fit.
    """
    if padding_mask is None:
        return None
    expected = tuple(inputs.shape[:-1])
    received = tuple(padding_mask.shape)
    if len(received) != len(expected) or any(
        None not in sizes and sizes[0] != sizes[1]
        for sizes in zip(received, expected)
    ):
        raise ValueError(
            "`padding_mask` must have the shape of `inputs` without the "
            f"last dimension, {expected}. Received: padding_mask of shape "
            f"{received}."
        )
    return ops.reshape(ops.cast(padding_mask, "bool"), (-1,))
