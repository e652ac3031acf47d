"""Dynamic loss scaling whose decisions agree on all replicas."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_pkm.ops.replicas import sum_over_replicas
from keras_pkm.optimizers.row_sparse import Gradient
from keras_pkm.optimizers.row_sparse import all_finite


@keras.saving.register_keras_serializable("keras_pkm")
class LossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """`keras.optimizers.LossScaleOptimizer` for models with memory.

    For training in float16. Under the policy `"mixed_float16"`, `compile` wraps
    optimizers in Keras' own class. That class checks the first replica's
    gradients only, and makes the sparse gradient of a table as large as the
    table. This class checks only the rows that were read, and lowers the scale
    if the gradient of any replica is not finite.

    Args:
        inner_optimizer: the `keras.optimizers.Optimizer` to wrap.
        **kwargs: further arguments of `keras.optimizers.LossScaleOptimizer`:
            `initial_scale`, `dynamic_growth_steps`, `name`.

    Example:

    >>> optimizer = keras_pkm.optimizers.LossScaleOptimizer(
    ...     keras_pkm.optimizers.PKMAdam()
    ... )
    """

    def check_finite(self, grads: Sequence[Gradient | None]) -> tf.Tensor:
        finite = all_finite([grad for grad in grads if grad is not None])
        failures = sum_over_replicas(tf.cast(~finite, "float32"))
        return tf.equal(failures, 0.0)
