"""The embedding bag and its gradients in TensorFlow's own operations.

They run anywhere. Rows are read for a block of tokens at a time, so that no
tensor has the size of all rows read.
"""

import functools
from collections.abc import Callable

import tensorflow as tf

from keras_pkm.ops.tensorflow.blocks import in_blocks
from keras_pkm.ops.tensorflow.kernels import has_gpu
from keras_pkm.ops.tensorflow.sorted_rows import sort_rows

# 8 MiB of rows are read at a time, which was fastest on CPUs. On GPUs, where
# each block launches kernels, it is 256 MiB.
_BLOCK_FLOATS = 2**21
_GPU_BLOCK_FLOATS = 2**26
# On GPUs TensorFlow's product with a sparse matrix counts reads * columns in
# 32 bits: with this many columns it can take 65,535 tokens of 128 reads.
_GPU_COLUMNS = 256


def weighted_sum(
    handle: tf.Tensor,
    shape: tf.TensorShape,
    slots: tf.Tensor,
    weights: tf.Tensor,
) -> tf.Tensor:
    """Returns `sum_j weights[t, j] * table[slots[t, j]]`, `(tokens, width)`.

    Args:
        handle: resource handle of the float32 table.
        shape: the table's shape, `(num_slots, width)`.
        slots: int32 tensor of shape `(tokens, reads)`.
        weights: float32 tensor of shape `(tokens, reads)`.
    """
    read_rows = functools.partial(gather, handle)
    return weighted_sum_of(read_rows, shape[1], slots, weights)


def weighted_sum_of(
    read_rows: Callable[[tf.Tensor], tf.Tensor],
    width: int,
    slots: tf.Tensor,
    weights: tf.Tensor,
) -> tf.Tensor:
    """Like `weighted_sum`, but a function returns the rows of slots."""

    def sums(slots: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        return tf.einsum("tj,tjw->tw", weights, read_rows(slots))

    return in_blocks(sums, _block(slots, width), slots, weights)


def weights_gradient(
    handle: tf.Tensor,
    shape: tf.TensorShape,
    slots: tf.Tensor,
    upstream: tf.Tensor,
) -> tf.Tensor:
    """Returns `upstream[t] · table[slots[t, j]]`, `(tokens, reads)`.

    Args:
        handle: resource handle of the float32 table.
        shape: the table's shape, `(num_slots, width)`.
        slots: int32 tensor of shape `(tokens, reads)`.
        upstream: float32 tensor of shape `(tokens, width)`.
    """

    def products(slots: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
        return tf.einsum("tw,tjw->tj", upstream, gather(handle, slots))

    return in_blocks(products, _block(slots, shape[1]), slots, upstream)


def table_gradient(
    shape: tf.TensorShape,
    slots: tf.Tensor,
    weights: tf.Tensor,
    upstream: tf.Tensor,
) -> tf.IndexedSlices:
    """Returns the rows of `readsᵀ · upstream` that were read, each once.

    Args:
        shape: the table's shape, `(num_slots, width)`.
        slots: int32 tensor of shape `(tokens, reads)`.
        weights: float32 tensor of shape `(tokens, reads)`.
        upstream: float32 tensor of shape `(tokens, width)`.

    Returns:
        `tf.IndexedSlices` with ascending rows.
    """
    rows, segments, tokens, weights = sort_reads(slots, weights)
    size = (tf.size(rows), tf.shape(upstream)[0])
    reads = tf.SparseTensor(
        tf.cast(tf.stack([segments, tokens], axis=1), "int64"),
        weights,
        tf.cast(tf.stack(size), "int64"),
    )
    values = product_in_parts(
        reads, upstream, _GPU_COLUMNS if has_gpu() else shape[1]
    )
    return tf.IndexedSlices(values, rows, tf.constant(list(shape)))


def product_in_parts(
    matrix: tf.SparseTensor, dense: tf.Tensor, columns: int
) -> tf.Tensor:
    """Returns `matrix · dense`, computed for `columns` columns at a time."""
    parts = [
        tf.sparse.sparse_dense_matmul(matrix, dense[:, first : first + columns])
        for first in range(0, dense.shape[1], columns)
    ]
    return parts[0] if len(parts) == 1 else tf.concat(parts, axis=1)


def _block(slots: tf.Tensor, width: int) -> tf.Tensor:
    """The number of tokens whose rows are read at a time."""
    floats = _GPU_BLOCK_FLOATS if has_gpu() else _BLOCK_FLOATS
    tokens = max(1, floats // (slots.shape[1] * width))
    return tf.clip_by_value(tf.shape(slots)[0], 1, tokens)


def gather(handle: tf.Tensor, slots: tf.Tensor) -> tf.Tensor:
    """Returns the table's rows `slots`, which gradient tapes do not track."""
    rows = tf.raw_ops.ResourceGather(
        resource=handle, indices=slots, dtype=tf.float32
    )
    return tf.stop_gradient(rows)


def sort_reads(
    slots: tf.Tensor, weights: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Sorts all reads by their slots.

    Args:
        slots: int32 tensor of shape `(tokens, reads)`.
        weights: float32 tensor of shape `(tokens, reads)`.

    Returns:
        A tuple `(rows, segments, tokens, weights)`: the slots that were read,
        each once, ascending; then, for each read in sorted order, the position
        of its slot in `rows`, its token, and its weight.
    """
    rows, segments, order = sort_rows(tf.reshape(slots, [-1]))
    weights = tf.gather(tf.reshape(weights, [-1]), order)
    return rows, segments, order // slots.shape[1], weights
