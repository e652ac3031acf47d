"""Whether to compute in the forms that were measured fastest on CPUs."""

import tensorflow as tf

from keras_pkm.ops.portable_forms import portable_read


def use_cpu_forms() -> bool:
    """Says which of two forms of the same sums a graph should hold.

    Those for CPUs are kernels of XLA and products with sparse matrices
    (benchmarks/README.md has the figures); stock operations are the others.
    Nothing was measured on GPUs. Eagerly, XLA would compile anew for every
    number of tokens. Graphs that other programs load hold stock operations.
    """
    if portable_read() is not None:
        return False
    gpus = tf.config.get_visible_devices("GPU")
    return not tf.executing_eagerly() and not gpus
