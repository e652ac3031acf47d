"""CPU kernels for the embedding bag: forward, weight and table gradient.

They work in graphs only, and compute the same as `stock_reads`. There, gathered
rows are written to memory and read again, which takes most of the time.
`benchmarks/README.md` has the figures.
"""

import functools
import math
from collections.abc import Callable
from typing import TypeAlias

import tensorflow as tf

from keras_pkm.ops.tensorflow.blocks import in_blocks
from keras_pkm.ops.tensorflow.csr_matrix import csr_matrix
from keras_pkm.ops.tensorflow.stock_reads import gather
from keras_pkm.ops.tensorflow.stock_reads import sort_reads

# Reads that are added up in one pass over the outputs. With more, XLA takes
# longer to compile and the result was no faster.
_UNROLLED = 8
# About how many floats of rows are multiplied at a time.
_CACHED = 2**16
# Tokens of a block, if the graph does not know the number of tokens.
_BLOCK = 128
# Takes the table's handle, the slots, and weights or upstream gradients.
_Kernel: TypeAlias = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]


def weighted_sum(
    handle: tf.Tensor,
    shape: tf.TensorShape,
    slots: tf.Tensor,
    weights: tf.Tensor,
) -> tf.Tensor:
    """Returns `sum_j weights[t, j] * table[slots[t, j]]`, `(tokens, width)`.

    Args: see `stock_reads.weighted_sum`.
    """
    kernel = _weighted_sum_kernel(tuple(shape))
    return _in_blocks(kernel, handle, slots, weights)


def weights_gradient(
    handle: tf.Tensor,
    shape: tf.TensorShape,
    slots: tf.Tensor,
    upstream: tf.Tensor,
) -> tf.Tensor:
    """Returns `upstream[t] · table[slots[t, j]]`, `(tokens, reads)`.

    Args: see `stock_reads.weights_gradient`.
    """
    kernel = _dot_products_kernel(tuple(shape))
    return _in_blocks(kernel, handle, slots, upstream)


def table_gradient(
    shape: tf.TensorShape,
    slots: tf.Tensor,
    weights: tf.Tensor,
    upstream: tf.Tensor,
) -> tf.IndexedSlices:
    """Returns the rows of `readsᵀ · upstream` that were read, each once.

    Args: see `stock_reads.table_gradient`.
    """
    rows, segments, tokens, weights = sort_reads(slots, weights)

    def product() -> tf.Tensor:
        shape = (tf.size(rows), tf.shape(upstream)[0])
        matrix = csr_matrix(segments, tokens, weights, shape)
        return tf.raw_ops.SparseMatrixMatMul(a=matrix, b=upstream)

    # A product with an empty matrix would crash the process.
    values = tf.cond(
        tf.size(rows) > 0, product, lambda: tf.zeros((0, shape[1]))
    )
    values = tf.ensure_shape(values, (None, shape[1]))
    return tf.IndexedSlices(values, rows, tf.constant(list(shape)))


def _in_blocks(
    kernel: _Kernel, handle: tf.Tensor, slots: tf.Tensor, others: tf.Tensor
) -> tf.Tensor:
    """Calls a kernel, which XLA compiles for a fixed number of tokens."""
    if slots.shape[0]:  # known, and not zero, which XLA cannot compile
        return kernel(handle, slots, others)
    return in_blocks(
        functools.partial(kernel, handle),
        _BLOCK,
        slots,
        others,
        parallel_iterations=10,
    )


# One kernel for each shape of table. The type of a resource does not include
# its shape, so that a shared kernel would reuse the first table's trace.


@functools.cache
def _weighted_sum_kernel(shape: tuple[int, int]) -> _Kernel:
    @tf.function(jit_compile=True, autograph=False)
    def kernel(
        handle: tf.Tensor, slots: tf.Tensor, weights: tf.Tensor
    ) -> tf.Tensor:
        tokens, reads = slots.shape

        def add(
            start: int | tf.Tensor, count: int, sums: tf.Tensor
        ) -> tuple[int | tf.Tensor, tf.Tensor]:
            part = tf.slice(slots, (0, start), (tokens, count))
            factors = tf.slice(weights, (0, start), (tokens, count))
            for j in range(count):
                sums += factors[:, j, None] * gather(handle, part[:, j])
            return start + count, sums

        step = min(_UNROLLED, reads)
        _, sums = tf.while_loop(
            lambda start, _: start < reads,
            lambda start, sums: add(start, step, sums),
            add(0, reads % step, tf.zeros((tokens, shape[1]))),
        )
        return sums

    return kernel


@functools.cache
def _dot_products_kernel(shape: tuple[int, int]) -> _Kernel:
    @tf.function(jit_compile=True, autograph=False)
    def kernel(
        handle: tf.Tensor, slots: tf.Tensor, upstream: tf.Tensor
    ) -> tf.Tensor:
        tokens, reads = slots.shape
        # The rows of a group of tokens fit the cache. With single tokens the
        # loop itself would dominate if rows are few and short.
        group = math.gcd(tokens, _power_of_two(_CACHED / (reads * shape[1])))
        groups = tokens // group
        slots = tf.reshape(slots, (groups, group, reads))
        upstream = tf.reshape(upstream, (groups, group, shape[1]))
        products = tf.TensorArray(
            "float32", groups, element_shape=(group, reads)
        )

        def add(
            place: tf.Tensor, products: tf.TensorArray
        ) -> tuple[tf.Tensor, tf.TensorArray]:
            rows = gather(handle, slots[place])
            found = tf.linalg.matvec(rows, upstream[place])
            return place + 1, products.write(place, found)

        _, products = tf.while_loop(
            lambda place, _: place < groups, add, (0, products)
        )
        return tf.reshape(products.stack(), (tokens, reads))

    return kernel


def _power_of_two(number: float) -> int:
    """The largest power of two that is not above a number, at least 1."""
    return 2 ** max(0, math.floor(math.log2(number)))
