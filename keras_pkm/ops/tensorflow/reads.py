"""The embedding bag: its gradient is row-sparse and needs little memory."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_pkm.ops.implementation import choose_implementation
from keras_pkm.ops.tensorflow import cpu_reads
from keras_pkm.ops.tensorflow import stock_reads
from keras_pkm.ops.tensorflow.kernels import use_cpu_kernels
from keras_pkm.ops.tensorflow.portable_reads import PortableRead
from keras_pkm.ops.tensorflow.portable_reads import current_read
from keras_pkm.ops.tensorflow.replicas import local_component
from keras_pkm.ops.tensorflow.sorted_rows import merge_rows
from keras_pkm.ops.tensorflow.stock_gradient import in_forward_mode
from keras_pkm.ops.tensorflow.stock_gradient import with_gradient_of
from keras_pkm.ops.tensorflow.xla import is_compiled_by_xla
from keras_pkm.ops.tensorflow.xla import refuse_xla


def embedding_bag(
    table: keras.Variable | tf.Variable | tf.Tensor,
    slots: tf.Tensor,
    weights: tf.Tensor,
    implementation: str,
) -> tf.Tensor:
    """See `keras_pkm.ops.embedding_bag`."""
    slots = tf.convert_to_tensor(slots)
    weights = tf.cast(weights, "float32")
    table = local_component(table)
    exported = current_read()
    if exported is None:
        # Gradient tapes do not see the raw reads below. Gathering zero rows
        # through the variable makes every active tape watch it, if it is
        # trainable.
        no_rows = tf.gather(table, tf.zeros([0], "int32"))
        is_plain = not isinstance(table, tf.Variable)
        if is_plain or in_forward_mode(no_rows, weights):
            exported = PortableRead(tf.gather, training=True)
    if exported is not None:
        return _read_with_stock_gradients(exported, table, slots, weights)

    implementation = choose_implementation(implementation)

    def kernels(
        _: tf.Tensor, slots: tf.Tensor, weights: tf.Tensor, upstream: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        reads = cpu_reads if use_cpu_kernels(implementation) else stock_reads
        # The closure's handle is the same resource as the argument, which would
        # put a dead placeholder into SavedModels.
        of_weights = reads.weights_gradient(
            tf.stop_gradient(table.handle), table.shape, slots, upstream
        )
        of_table = reads.table_gradient(table.shape, slots, weights, upstream)
        return of_table.indices, of_table.values, of_weights

    # The table is passed as its resource handle. Naming it in grad_fn's
    # `variables=` would make TensorFlow read all of it as a tensor.
    @tf.custom_gradient
    def read(
        handle: tf.Tensor, slots: tf.Tensor, weights: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[..., Any]]:
        def gradient(
            upstream: tf.Tensor,
        ) -> tuple[tf.IndexedSlices, None, tf.Tensor]:
            refuse_xla("The gradient of memory values")
            backward = with_gradient_of(_stock_gradients, kernels)
            rows, values, of_weights = backward(
                table.handle, slots, weights, tf.convert_to_tensor(upstream)
            )
            shape = tf.constant(list(table.shape))
            return tf.IndexedSlices(values, rows, shape), None, of_weights

        reads = cpu_reads if use_cpu_kernels(implementation) else stock_reads
        # Otherwise tapes would record this computation and keep its rows. XLA,
        # under which there is no gradient, cannot stop that of a handle.
        constant = _nan_outside(
            table.shape[0], slots, tf.stop_gradient(weights)
        )
        if not is_compiled_by_xla():
            handle = tf.stop_gradient(handle)
        outputs = reads.weighted_sum(handle, table.shape, slots, constant)
        return outputs, gradient

    outputs = read(table.handle, slots, weights)
    return tf.ensure_shape(outputs, (slots.shape[0], table.shape[1]))


def _nan_outside(
    num_slots: int, slots: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
    """Makes the weights of slots that do not exist NaN.

    XLA and GPUs would read another row, or zeros, without an error.
    """
    is_slot = (slots >= 0) & (slots < num_slots)
    # A constant NaN would stop every graph under `enable_check_numerics`.
    return weights * tf.sqrt(tf.where(is_slot, 1.0, -1.0))


def _stock_gradients(
    handle: tf.Tensor, slots: tf.Tensor, weights: tf.Tensor, upstream: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The rows read, ascending, and the gradients of these and of weights."""
    rows = tf.raw_ops.ResourceGather(
        resource=handle, indices=slots, dtype=tf.float32
    )
    of_weights = tf.einsum("tw,tjw->tj", upstream, rows)
    of_reads = tf.einsum("tj,tw->tjw", weights, upstream)
    of_rows, rows = merge_rows(
        tf.IndexedSlices(
            tf.reshape(of_reads, (-1, upstream.shape[1])),
            tf.reshape(slots, [-1]),
        )
    )
    return rows, of_rows, of_weights


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
