"""Reads in graphs that run, and train, without this package."""

import contextlib
from collections.abc import Callable

import keras

from keras_pkm.ops.tensorflow_only import require_tensorflow
from keras_pkm.ops.tensors import Tensor


def portable_reads(
    read_rows: Callable[[Tensor, Tensor], Tensor] | None = None,
    training: bool = False,
) -> contextlib.AbstractContextManager[None]:
    """Makes graphs that are traced within this context run anywhere.

    Such graphs contain TensorFlow's own operations with TensorFlow's own
    gradients: a program that loads a SavedModel does not have this package's
    gradients. The `implementation` of each layer is ignored here.

    Args:
        read_rows: function that takes a value table and int32 slots, and
            returns the rows of these slots as float32. Defaults to `tf.gather`.
        training: bool. With `True` the gradient of a table is row-sparse, and
            each read keeps `tokens * reads * width` floats. With `False` rows
            are read in blocks of tokens, which needs little memory, and the
            gradient of a table is dense. Defaults to `False`.

    Raises:
        RuntimeError: Keras uses another backend than TensorFlow.

    Example:

    >>> table = tf.Variable([[1.0], [2.0]])
    >>> @tf.function
    ... def read(slots, weights):
    ...     return keras_pkm.ops.embedding_bag(table, slots, weights)
    >>> with keras_pkm.ops.portable_reads():
    ...     read(tf.constant([[0, 1]]), tf.constant([[0.5, 0.5]])).numpy()
    array([[1.5]], dtype=float32)
    """
    require_tensorflow("`keras_pkm.ops.portable_reads`")
    from keras_pkm.ops.tensorflow import portable_reads as on_tensorflow

    return on_tensorflow.portable_reads(read_rows, training)


def in_portable_reads() -> bool:
    """Whether a graph is traced within `portable_reads`."""
    if keras.backend.backend() != "tensorflow":
        return False
    from keras_pkm.ops.tensorflow import portable_reads as on_tensorflow

    return on_tensorflow.current_read() is not None
