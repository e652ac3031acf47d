"""The search over product keys, with a fast gradient on CPUs."""

from collections.abc import Callable

import tensorflow as tf

from keras_pkm.ops.implementation import choose_implementation
from keras_pkm.ops.tensorflow.kernels import use_cpu_kernels
from keras_pkm.ops.tensorflow.sparse_score_gradient import with_sparse_gradient
from keras_pkm.ops.tensorflow.stock_gradient import in_forward_mode


def search(
    find: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
    queries: tf.Tensor,
    sub_keys: tf.Tensor,
    implementation: str,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns what `find` returns, with a gradient that may be faster."""
    cpu = use_cpu_kernels(choose_implementation(implementation))
    if cpu and not in_forward_mode(queries, sub_keys):
        return with_sparse_gradient(find, queries, sub_keys)
    return find(queries, sub_keys)
