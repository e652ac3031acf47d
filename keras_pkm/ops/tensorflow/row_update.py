"""Updates the rows of tables that a batch read, and no others."""

from collections.abc import Callable

import keras
import tensorflow as tf

from keras_pkm.ops.implementation import choose_implementation
from keras_pkm.ops.tensorflow.cpu_row_update import update_in_blocks
from keras_pkm.ops.tensorflow.kernels import use_cpu_kernels
from keras_pkm.ops.tensorflow.xla import refuse_xla


def update_rows(
    tables: tuple[keras.Variable | tf.Variable, ...],
    gradient: tf.IndexedSlices,
    rule: Callable[..., tuple[tf.Tensor, ...]],
) -> None:
    """Replaces the rows of some tables that were read.

    A row counts as read if its gradient is not all zero. Rows that only padding
    read do not count.

    Args:
        tables: see `keras_pkm.ops.backend.Backend.update_rows`. Of those that
            are distributed, the components on the current device are updated.
        gradient: deduplicated `tf.IndexedSlices`.
        rule: see there.
    """
    refuse_xla("The update of memory values")
    local = tuple(map(_component, tables))
    if use_cpu_kernels(choose_implementation("auto", training=True)):
        update_in_blocks(local, gradient, rule)
    else:
        update_at_once(local, gradient, rule)


def update_at_once(
    tables: tuple[tf.Variable, ...],
    gradient: tf.IndexedSlices,
    rule: Callable[..., tuple[tf.Tensor, ...]],
) -> None:
    """Replaces the rows that were read, with TensorFlow's own operations.

    Args: see `update_rows`.
    """
    read = tf.reduce_any(tf.not_equal(gradient.values, 0), axis=-1)
    rows = tf.boolean_mask(gradient.indices, read)
    updated = rule(
        tf.boolean_mask(gradient.values, read),
        *(tf.gather(table, rows) for table in tables),
    )
    for table, new in zip(tables, updated):
        table.scatter_update(tf.IndexedSlices(new, rows))


def _component(variable: keras.Variable | tf.Variable) -> tf.Variable:
    """Returns the plain variable on the device that is being updated.

    Gathering from the distributed variable itself would copy all of it.
    """
    if isinstance(variable, keras.Variable):
        variable = variable.value
    if isinstance(variable, tf.distribute.DistributedValues):
        return variable._get()
    return variable
