"""Sparse matrices for products that stock operations lack on CPUs."""

import tensorflow as tf


def csr_matrix(
    rows: tf.Tensor,
    columns: tf.Tensor,
    values: tf.Tensor,
    shape: tuple[int | tf.Tensor, int | tf.Tensor],
) -> tf.Tensor:
    """Returns a sparse matrix in CSR format for `tf.raw_ops.SparseMatrix...`.

    Args:
        rows: int tensor of shape `(entries,)`, ascending.
        columns: int tensor of shape `(entries,)`. Entries at the same position
            add up in products.
        values: float tensor of shape `(entries,)`.
        shape: height and width, ints or int scalars.
    """
    return tf.raw_ops.SparseTensorToCSRSparseMatrix(
        indices=tf.cast(tf.stack([rows, columns], axis=1), "int64"),
        values=values,
        dense_shape=tf.cast(tf.stack(shape), "int64"),
    )
