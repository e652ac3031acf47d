"""A memory access as the metrics count it: by token, and its best slots."""

from keras import ops


def flatten_access(slots, weights, padding_mask=None):
    """Returns an access by token, and which tokens are not padding.

    Args:
        slots: int tensor of shape `(..., num_heads, top_k)`.
        weights: float tensor of the same shape.
        padding_mask: optional bool or int tensor of shape `(...)`.

    Returns:
        Slots (int32) and weights (float64) of shape
        `(tokens, num_heads, top_k)`, and an int64 tensor of shape `(tokens,)`,
        0 at padding and 1 elsewhere.
    """
    slots = ops.convert_to_tensor(slots, "int32")
    heads, top_k = slots.shape[-2:]
    slots = ops.reshape(slots, (-1, heads, top_k))
    weights = ops.reshape(ops.cast(weights, "float64"), (-1, heads, top_k))
    if padding_mask is None:
        counted = ops.ones((ops.shape(slots)[0],), "int64")
    else:
        counted = ops.cast(
            ops.cast(ops.reshape(padding_mask, (-1,)), "bool"), "int64"
        )
    return slots, weights, counted


def top1_slots(slots, weights):
    """Returns the slot of the largest weight along the last axis."""
    best = ops.expand_dims(ops.argmax(weights, axis=-1), -1)
    return ops.squeeze(ops.take_along_axis(slots, best, axis=-1), -1)
