"""Rows of a table in ascending order, each once, from any that repeat."""

import tensorflow as tf


def sort_rows(indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Sorts row numbers and finds where each of them stands.

    Args:
        indices: int tensor of shape `(entries,)`, not negative.

    Returns:
        A tuple `(rows, segments, order)`: the rows, ascending, each once; the
        order that sorts the entries, stably; and for each entry, in that
        order, the position of its row in `rows`.
    """
    order = tf.argsort(indices, stable=True)
    indices = tf.gather(indices, order)
    first = indices != tf.concat([[-1], indices[:-1]], axis=0)
    segments = tf.cumsum(tf.cast(first, "int32")) - 1
    return tf.boolean_mask(indices, first), segments, order


def deduplicate(slices: tf.IndexedSlices) -> tf.IndexedSlices:
    """Sums the entries of `tf.IndexedSlices` that stand for the same row.

    Returns:
        `tf.IndexedSlices` with ascending rows: an optimizer goes through a
        large table much faster in order.
    """

    def merge() -> tuple[tf.Tensor, tf.Tensor]:
        rows, segments, order = sort_rows(slices.indices)
        values = tf.gather(slices.values, order)
        return tf.math.segment_sum(values, segments), rows

    ascending = slices.indices[1:] > slices.indices[:-1]
    values, rows = tf.cond(
        tf.reduce_all(ascending), lambda: (slices.values, slices.indices), merge
    )
    return tf.IndexedSlices(values, rows, slices.dense_shape)
