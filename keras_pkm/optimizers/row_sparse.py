"""Functions of gradients, which are `tf.IndexedSlices` for tables."""

from collections.abc import Sequence
from typing import TypeAlias

import tensorflow as tf

from keras_pkm.ops.replicas import num_replicas
from keras_pkm.ops.replicas import sum_over_replicas
from keras_pkm.ops.sorted_rows import deduplicate

#: The gradient of any variable.
Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices


def to_slices(gradient: Gradient) -> tf.IndexedSlices:
    """The gradient of a table as slices with each row at most once."""
    if isinstance(gradient, tf.IndexedSlices):
        return deduplicate(gradient)
    rows = tf.where(tf.reduce_any(tf.not_equal(gradient, 0), axis=-1))[:, 0]
    return tf.IndexedSlices(
        tf.gather(gradient, rows), rows, tf.shape(gradient, rows.dtype)
    )


def to_tensor(gradient: Gradient) -> tf.Tensor:
    """The gradient as a tensor of the variable's shape."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    return tf.math.unsorted_segment_sum(
        gradient.values, gradient.indices, gradient.dense_shape[0]
    )


def all_finite(gradients: Sequence[Gradient]) -> tf.Tensor:
    """Whether no entry of any gradient is NaN or infinite, a bool scalar."""
    finite = [
        tf.reduce_all(tf.math.is_finite(_values(gradient)))
        for gradient in gradients
    ]
    return tf.reduce_all(tf.stack(finite))


def clip(
    gradients: list[Gradient],
    clipnorm: float | None,
    global_clipnorm: float | None,
    clipvalue: float | None,
) -> list[Gradient]:
    """Clips gradients by the first of these arguments that is set.

    Args:
        gradients: Their rows must be deduplicated.
        clipnorm: The largest norm of each gradient.
        global_clipnorm: The largest norm of all gradients together.
        clipvalue: The largest absolute value of an entry.
    """
    if clipnorm:
        return [tf.clip_by_norm(gradient, clipnorm) for gradient in gradients]
    if global_clipnorm:
        return tf.clip_by_global_norm(gradients, global_clipnorm)[0]
    if clipvalue:
        return [_clip_by_value(gradient, clipvalue) for gradient in gradients]
    return gradients


def _clip_by_value(gradient: Gradient, limit: float) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(
            tf.clip_by_value(gradient.values, -limit, limit),
            gradient.indices,
            gradient.dense_shape,
        )
    return tf.clip_by_value(gradient, -limit, limit)


def _values(gradient: Gradient) -> tf.Tensor:
    if isinstance(gradient, tf.IndexedSlices):
        return gradient.values
    return gradient


def reduce_gradients(
    grads: Sequence[Gradient], is_memory: Sequence[bool], reduction: str
) -> list[Gradient]:
    """Returns gradients summed over replicas, those of tables as slices.

    Args:
        grads: The gradients of this replica.
        is_memory: Whether each gradient belongs to a value table.
        reduction: `"sparse"` to send the rows of tables that were read,
            `"dense"` to send whole tables.
    """
    if num_replicas() > 1:
        # Repeated rows of a replica are summed first, so that less is sent.
        grads = sum_over_replicas(
            [
                to_slices(grad)
                if of_memory and reduction == "sparse"
                else to_tensor(grad)
                for grad, of_memory in zip(grads, is_memory)
            ]
        )
    return [
        to_slices(grad) if of_memory else to_tensor(grad)
        for grad, of_memory in zip(grads, is_memory)
    ]
