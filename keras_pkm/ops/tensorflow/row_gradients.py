"""Gradients, which are `tf.IndexedSlices` for tables."""

from collections.abc import Sequence
from typing import TypeAlias

import keras
import tensorflow as tf

from keras_pkm.ops.tensorflow.replicas import local_component
from keras_pkm.ops.tensorflow.replicas import num_replicas
from keras_pkm.ops.tensorflow.replicas import sum_over_replicas
from keras_pkm.ops.tensorflow.sorted_rows import deduplicate

#: The gradient of any variable.
Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices


def reduce_gradients(
    gradients: Sequence[Gradient], of_tables: Sequence[bool], reduction: str
) -> list[Gradient]:
    """Returns gradients summed over replicas; tables have each row once.

    Args:
        gradients: The gradients of this replica.
        of_tables: Whether each gradient belongs to a value table.
        reduction: `"sparse"` to send the rows of tables that were read,
            `"dense"` to send whole tables.
    """
    if num_replicas() > 1:
        # Repeated rows of a replica are summed first, so that less is sent.
        gradients = sum_over_replicas(
            [
                _to_slices(gradient)
                if of_table and reduction == "sparse"
                else _to_tensor(gradient)
                for gradient, of_table in zip(gradients, of_tables)
            ]
        )
    return [
        _to_slices(gradient) if of_table else _to_tensor(gradient)
        for gradient, of_table in zip(gradients, of_tables)
    ]


def entries(gradient: Gradient) -> tf.Tensor:
    """Returns the entries of a gradient; those of other rows are zero."""
    if isinstance(gradient, tf.IndexedSlices):
        return gradient.values
    return gradient


def with_entries(gradient: Gradient, entries: tf.Tensor) -> Gradient:
    """Returns a gradient with other entries in the same rows."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(entries, gradient.indices, gradient.dense_shape)
    return entries


def keep_rows(gradient: Gradient, kept: keras.Variable) -> Gradient:
    """Sets rows of a table's gradient to zero.

    Args:
        gradient: A result of `reduce_gradients`.
        kept: bool variable of shape `(num_slots,)`: the rows to keep.
    """
    is_kept = tf.gather(local_component(kept), gradient.indices)
    return with_entries(
        gradient, tf.where(is_kept[:, None], gradient.values, 0)
    )


def _to_slices(gradient: Gradient) -> tf.IndexedSlices:
    """The gradient of a table as slices with each row at most once."""
    if isinstance(gradient, tf.IndexedSlices):
        return deduplicate(gradient)
    rows = tf.where(tf.reduce_any(tf.not_equal(gradient, 0), axis=-1))[:, 0]
    return tf.IndexedSlices(
        tf.gather(gradient, rows), rows, tf.shape(gradient, rows.dtype)
    )


def _to_tensor(gradient: Gradient) -> tf.Tensor:
    """The gradient as a tensor of the variable's shape."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    return tf.math.unsorted_segment_sum(
        gradient.values, gradient.indices, gradient.dense_shape[0]
    )
