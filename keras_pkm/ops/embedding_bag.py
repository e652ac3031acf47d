"""Weighted sum of table rows with a bounded-memory, row-sparse gradient."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_pkm.ops import cpu_sums
from keras_pkm.ops import stock_sums
from keras_pkm.ops.cpu_forms import use_cpu_forms
from keras_pkm.ops.portable_forms import portable_read


def embedding_bag(
    table: keras.Variable | tf.Variable | tf.Tensor,
    slots: tf.Tensor,
    weights: tf.Tensor,
) -> tf.Tensor:
    """Reads `sum_j weights[t, j] * table[slots[t, j]]` for every token t.

    Unlike `tf.gather` followed by a product, the read keeps only `slots` and
    `weights` for the backward pass, where it reads the rows again, instead
    of `tokens * reads * width` floats; and the gradient of the table arrives
    deduplicated, as `tf.IndexedSlices` with one entry for each row read.
    Neither pass reads the whole table. On CPUs a graph (`tf.function`, `fit`,
    `predict`) holds no gathered rows at all.

    Args:
        table: float32 variable of shape `(num_slots, width)`: a
            `keras.Variable` created with `autocast=False`, or a
            `tf.Variable`; inside `tf.distribute` its component on the current
            replica is read. A plain tensor works too, with a dense gradient.
        slots: int32 tensor of shape `(tokens, reads)`.
        weights: float tensor of shape `(tokens, reads)`.

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
    read_rows = portable_read()
    if read_rows is None and not isinstance(table, tf.Variable):
        read_rows = tf.gather
    if read_rows is not None:
        return tf.einsum("tj,tjw->tw", weights, read_rows(table, slots))

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
            sums = cpu_sums if use_cpu_forms() else stock_sums
            # The handle argument would put a dead placeholder into SavedModels
            # here; the closure's handle is the same resource.
            weights_gradient = sums.weights_gradient(
                table.handle, table.shape, slots, upstream
            )
            table_gradient = sums.table_gradient(
                table.shape, slots, weights, upstream
            )
            return table_gradient, None, weights_gradient

        sums = cpu_sums if use_cpu_forms() else stock_sums
        return sums.weighted_sum(handle, table.shape, slots, weights), gradient

    outputs = read(table.handle, slots, weights)
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
