"""Prepares a memory access for counting: tokens in rows, best slots."""

from typing import Any

import numpy.typing as npt
from keras import ops

from keras_pkm.metrics.class_labels import check_values
from keras_pkm.metrics.dtypes import INT
from keras_pkm.metrics.dtypes import WIDEST_FLOAT
from keras_pkm.ops.tensors import Tensor


def flatten_access(
    slots: npt.ArrayLike,
    weights: npt.ArrayLike,
    padding_mask: npt.ArrayLike | None,
    num_slots: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns an access with one row a token, and which rows are not padding.

    Args:
        slots: int tensor of shape `(..., num_heads, top_k)`.
        weights: float tensor of the same shape.
        padding_mask: optional bool or int tensor of shape `(...)`.
        num_slots: The number of slots that there are.

    Returns:
        Slots (int32) and weights (of the widest float dtype) of shape
        `(tokens, num_heads, top_k)`, and a tensor of dtype `INT` and shape
        `(tokens,)`, 0 at padding and 1 elsewhere.

    Raises:
        ValueError: the shapes do not fit, or a slot is none of these. In a
            graph of TensorFlow, where values are not known yet, the latter is
            `tf.errors.InvalidArgumentError`. In functions compiled by JAX or
            XLA, tokens that read such a slot are not counted.
    """
    all_slots = ops.convert_to_tensor(slots, "int32")
    if len(all_slots.shape) < 2:
        raise ValueError(
            "`slots` must have the shape (..., num_heads, top_k). Received: "
            f"slots of shape {tuple(all_slots.shape)}."
        )
    all_weights = ops.convert_to_tensor(weights)
    check_shapes(
        "`weights` must have the shape of `slots`.",
        all_slots.shape,
        all_weights.shape,
    )
    heads, top_k = all_slots.shape[-2:]
    flat_slots = ops.reshape(all_slots, (-1, heads, top_k))
    flat_weights = ops.reshape(
        ops.cast(all_weights, WIDEST_FLOAT), (-1, heads, top_k)
    )
    if padding_mask is None:
        counted = ops.ones((ops.shape(flat_slots)[0],), INT)
    else:
        mask = ops.convert_to_tensor(padding_mask)
        check_shapes(
            "`padding_mask` must have the shape of `slots` without the last "
            "two axes.",
            all_slots.shape[:-2],
            mask.shape,
        )
        counted = ops.cast(ops.cast(ops.reshape(mask, (-1,)), "bool"), INT)
    is_slot = (flat_slots >= 0) & (flat_slots < num_slots)
    is_right = ops.all(is_slot, axis=(1, 2))
    check_values(
        is_right,
        "`slots` must be those of a memory with `num_slots` slots, "
        f"{num_slots}.",
        flat_slots,
    )
    return flat_slots, flat_weights, counted * ops.cast(is_right, INT)


def check_shapes(rule: str, expected: Any, received: Any) -> None:
    """Checks a shape, as far as it is known.

    Args:
        rule: What the shape has to be.
        expected: The shape that it must be; an axis may be `None`.
        received: The shape that it is.

    Raises:
        ValueError: it is another one.
    """
    if len(expected) == len(received) and all(
        a == b or a is None or b is None for a, b in zip(expected, received)
    ):
        return
    raise ValueError(
        f"{rule} Received: the shape {tuple(received)} instead of "
        f"{tuple(expected)}."
    )


def top1_slots(slots: Tensor, weights: Tensor) -> Tensor:
    """Returns the slot with the largest weight along the last axis."""
    best = ops.expand_dims(ops.argmax(weights, axis=-1), -1)
    return ops.squeeze(ops.take_along_axis(slots, best, axis=-1), -1)
