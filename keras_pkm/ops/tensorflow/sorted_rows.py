"""Sorts and deduplicates rows of a table."""

import tensorflow as tf


def sort_rows(indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Sorts row numbers and finds the position of each.

    Args:
        indices: int tensor of shape `(entries,)`, not negative.

    Returns:
        A tuple `(rows, segments, order)`. `rows`: the rows, ascending, each
        once. `segments`: for each entry, in sorted order, the position of its
        row in `rows`. `order`: the permutation that sorts the entries, stably.
    """
    order = tf.argsort(indices, stable=True)
    indices = tf.gather(indices, order)
    first = tf.not_equal(indices, tf.concat([[-1], indices[:-1]], axis=0))
    segments = tf.cumsum(tf.cast(first, "int32")) - 1
    return tf.boolean_mask(indices, first), segments, order


def deduplicate(slices: tf.IndexedSlices) -> tf.IndexedSlices:
    """Sums the entries of `tf.IndexedSlices` that belong to the same row.

    Returns:
        `tf.IndexedSlices` with ascending rows. An optimizer updates a large
        table much faster in order.
    """
    ascending = slices.indices[1:] > slices.indices[:-1]
    values, rows = tf.cond(
        tf.reduce_all(ascending),
        lambda: (slices.values, slices.indices),
        lambda: merge_rows(slices),
    )
    return tf.IndexedSlices(values, rows, slices.dense_shape)


def merge_rows(slices: tf.IndexedSlices) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the sums of a row's entries, and the rows, ascending."""
    rows, segments, order = sort_rows(slices.indices)
    values = tf.gather(slices.values, order)
    return tf.math.segment_sum(values, segments), rows
