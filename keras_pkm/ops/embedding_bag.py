"""Weighted sum of table rows with a bounded-memory, row-sparse gradient."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_pkm.ops import cpu_reads
from keras_pkm.ops import stock_reads
from keras_pkm.ops.implementation import choose_implementation
from keras_pkm.ops.implementation import use_cpu_kernels
from keras_pkm.ops.portable_reads import PortableRead
from keras_pkm.ops.portable_reads import current_read
from keras_pkm.ops.xla import refuse_xla


def embedding_bag(
    table: keras.Variable | tf.Variable | tf.Tensor,
    slots: tf.Tensor,
    weights: tf.Tensor,
    implementation: str = "auto",
) -> tf.Tensor:
    """Reads `sum_j weights[t, j] * table[slots[t, j]]` for every token t.

    Unlike `tf.gather` followed by a product, the read keeps only `slots` and
    `weights` for the backward pass, where it reads the rows again, instead
    of `tokens * reads * width` floats; and the gradient of the table arrives
    deduplicated, as `tf.IndexedSlices` with one entry for each row read.
    Neither pass reads the whole table. Rows are gathered in blocks of tokens:
    8 MiB at a time, on GPUs 256 MiB.

    Args:
        table: float32 variable of shape `(num_slots, width)`: a
            `keras.Variable` created with `autocast=False`, or a
            `tf.Variable`; inside `tf.distribute` its component on the current
            replica is read. A plain tensor works too, with a dense gradient.
        slots: int32 tensor of shape `(tokens, reads)`.
        weights: float tensor of shape `(tokens, reads)`.
        implementation: `"fastest"`, with kernels that need this package's
            gradients, and on CPUs XLA; `"portable"`, of TensorFlow's own
            operations; or `"auto"`, the latter unless
            `keras_pkm.ops.use_implementation` says otherwise. Defaults to
            `"auto"`.

    Returns:
        float32 tensor of shape `(tokens, width)`.

    Example:

    >>> table = keras.Variable(np.eye(3, dtype="float32"))
    >>> slots = tf.constant([[0, 2], [1, 1]])
    >>> weights = tf.constant([[0.25, 0.75], [0.5, 0.5]])
    >>> keras_pkm.ops.embedding_bag(table, slots, weights).numpy()
    array([[0.25, 0.  , 0.75],
           [0.  , 1.  , 0.  ]], dtype=float32)
    """
    weights = tf.cast(weights, "float32")
    table = local_component(table)
    exported = current_read()
    if exported is None and not isinstance(table, tf.Variable):
        exported = PortableRead(tf.gather, training=True)
    if exported is not None:
        return _read_with_stock_gradients(exported, table, slots, weights)

    cpu = use_cpu_kernels(choose_implementation(implementation))
    reads = cpu_reads if cpu else stock_reads
    # The raw reads below are unknown to gradient tapes. Reading no row through
    # the variable makes every active tape watch it, if it is trainable.
    tf.gather(table, tf.zeros([0], "int32"))

    # The table enters as its resource handle. Naming it in grad_fn's
    # `variables=` would make TensorFlow read it as a tensor, as a whole.
    @tf.custom_gradient
    def read(
        handle: tf.Tensor, slots: tf.Tensor, weights: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[..., Any]]:
        def gradient(
            upstream: tf.Tensor,
        ) -> tuple[tf.IndexedSlices, None, tf.Tensor]:
            refuse_xla("The gradient of memory values")
            # The handle argument would put a dead placeholder into SavedModels
            # here; the closure's handle is the same resource.
            weights_gradient = reads.weights_gradient(
                table.handle, table.shape, slots, upstream
            )
            table_gradient = reads.table_gradient(
                table.shape, slots, weights, upstream
            )
            return table_gradient, None, weights_gradient

        # Eager tapes would record what is computed here, and keep its rows.
        constant = tf.stop_gradient(weights)
        outputs = reads.weighted_sum(handle, table.shape, slots, constant)
        return outputs, gradient

    outputs = read(table.handle, slots, weights)
    return tf.ensure_shape(outputs, (slots.shape[0], table.shape[1]))


def _read_with_stock_gradients(
    exported: PortableRead,
    table: tf.Variable | tf.Tensor,
    slots: tf.Tensor,
    weights: tf.Tensor,
) -> tf.Tensor:
    if exported.training:
        rows = exported.read_rows(table, slots)
        return tf.einsum("tj,tjw->tw", weights, rows)
    outputs = stock_reads.weighted_sum_of(
        functools.partial(exported.read_rows, table),
        table.shape[1],
        slots,
        weights,
    )
    return tf.ensure_shape(outputs, (slots.shape[0], table.shape[1]))


def local_component(
    variable: keras.Variable | tf.Variable | tf.Tensor,
) -> tf.Variable | tf.Tensor:
    """The plain `tf.Variable` that holds `variable` on the current replica.

    Gathering from a distributed variable itself copies the whole of it.
    """
    if isinstance(variable, keras.Variable):
        variable = variable.value
    if not isinstance(variable, tf.distribute.DistributedValues):
        return variable
    if tf.distribute.in_cross_replica_context():
        # Symbolic builds and direct calls under a scope: any component will do.
        strategy = tf.distribute.get_strategy()
        return strategy.experimental_local_results(variable)[0]
    return variable._get()
