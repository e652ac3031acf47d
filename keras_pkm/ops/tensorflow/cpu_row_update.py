"""CPU kernel for the update of a table's rows, in graphs.

XLA updates the tables in place. It works on parts that fit the processor's
cache, so that each row is read and written once. `benchmarks/README.md` has the
figures.
"""

from collections.abc import Callable

import tensorflow as tf

# 768 KiB of each table.
_PART_FLOATS = 3 * 2**16
# Parts of a block. A kernel works on a fixed number of rows, while a gradient
# has any number; larger blocks need fewer calls but more padding.
_PARTS = 24


def update_in_blocks(
    tables: tuple[tf.Variable, ...],
    gradient: tf.IndexedSlices,
    rule: Callable[..., tuple[tf.Tensor, ...]],
) -> None:
    """Replaces the rows of some tables that were read.

    Args: see `keras_pkm.ops.tensorflow.row_update.update_rows`.
    """
    num_slots, width = tables[0].shape
    part = min(num_slots, max(1, _PART_FLOATS // width))
    block = part * min(_PARTS, -(-num_slots // part))
    count = tf.size(gradient.indices)
    rows = tf.cast(gradient.indices, "int32")
    rows, gradients = _pad_to(block, rows, gradient.values)

    @tf.function(jit_compile=True, autograph=False)
    def update_block(
        rows: tf.Tensor, gradients: tf.Tensor, begin: tf.Tensor, end: tf.Tensor
    ) -> None:
        def update_part(begin: tf.Tensor) -> tuple[tf.Tensor]:
            # The last part may overlap the one before: XLA shifts a slice that
            # would go beyond the end.
            first = tf.minimum(begin, block - part)
            places = first + tf.range(part)
            slots = tf.slice(rows, (first,), (part,))
            gradient = tf.slice(gradients, (first, 0), (part, width))
            updated = rule(
                gradient, *(tf.gather(table, slots) for table in tables)
            )
            # As a matrix product, the sums of rows cost nothing. XLA's
            # reduction of rows takes as long as all reads of one table.
            sums = tf.matmul(tf.abs(gradient), tf.ones((width, 1)))
            read = (places >= begin) & (sums[:, 0] > 0)
            # XLA drops updates of rows that do not exist.
            slots = tf.where(read, slots, num_slots)
            for table, new in zip(tables, updated):
                table.scatter_update(tf.IndexedSlices(new, slots))
            return (first + part,)

        tf.while_loop(lambda begin: begin < end, update_part, (begin,))

    def next_block(start: tf.Tensor) -> tuple[tf.Tensor]:
        first = tf.minimum(start, tf.size(rows) - block)
        update_block(
            tf.ensure_shape(rows[first : first + block], (block,)),
            tf.ensure_shape(gradients[first : first + block], (block, width)),
            start - first,
            tf.minimum(count - first, block),
        )
        return (start + block,)

    tf.while_loop(
        lambda start: start < count, next_block, (0,), parallel_iterations=1
    )


def _pad_to(
    size: int, rows: tf.Tensor, gradients: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Pads gradients to `size` rows with zeros, which count as not read."""
    missing = size - tf.size(rows)
    return tf.cond(
        missing > 0,
        lambda: (
            tf.pad(rows, [[0, missing]]),
            tf.pad(gradients, [[0, missing], [0, 0]]),
        ),
        lambda: (rows, gradients),
    )
