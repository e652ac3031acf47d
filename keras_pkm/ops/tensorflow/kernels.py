"""Chooses between CPU kernels and TensorFlow's own operations."""

import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from keras_pkm.ops.tensorflow.portable_reads import current_read


def use_cpu_kernels(implementation: str) -> bool:
    """Whether to use the CPU kernels rather than TensorFlow's operations.

    The CPU kernels are made of XLA kernels and products with sparse matrices
    (benchmarks/README.md has the figures). GPUs use TensorFlow's own
    operations: nothing else was measured there. So does eager code, since XLA
    would compile again for every number of tokens. So do graphs that are traced
    while `tf.debugging` checks numbers or dumps tensors: what it adds to each
    operation, XLA does not have.

    Args:
        implementation: The result of `choose_implementation`.
    """
    if implementation == "portable" or current_read() is not None:
        return False
    if tf.executing_eagerly() or op_callbacks.should_invoke_op_callbacks():
        return False
    return not has_gpu()


def has_gpu() -> bool:
    """Whether TensorFlow may place operations on a GPU."""
    return bool(tf.config.get_visible_devices("GPU"))
