"""Dynamic loss scaling whose decisions agree on all replicas."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_pkm.ops.arguments import finite
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.backend import backend
from keras_pkm.ops.tensors import Gradient
from keras_pkm.ops.tensors import Tensor
from keras_pkm.optimizers.gradients import all_finite


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
        initial_scale: float. The first scale. Defaults to `2**15`.
        dynamic_growth_steps: int. The scale is doubled after this number of
            steps in a row whose gradients are finite. Defaults to `2000`.
        name: optional str.

    Example:

    >>> optimizer = keras_pkm.optimizers.LossScaleOptimizer(
    ...     keras_pkm.optimizers.PKMAdam()
    ... )
    """

    def __init__(
        self,
        inner_optimizer: keras.optimizers.Optimizer,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
        **kwargs: Any,
    ):
        if not isinstance(inner_optimizer, keras.optimizers.Optimizer):
            raise ValueError(
                "`inner_optimizer` must be a `keras.optimizers.Optimizer`, "
                "such as `PKMAdam()`. Received: "
                f"inner_optimizer={inner_optimizer!r}."
            )
        super().__init__(
            inner_optimizer,
            # A scale of 0 would take all gradients away.
            finite("initial_scale", initial_scale, least=2.0**-126),
            positive_int("dynamic_growth_steps", dynamic_growth_steps),
            name,
            **kwargs,
        )

    @property
    def memory_learning_rate(self) -> Any:
        """The memory learning rate of an inner `PKMAdam`."""
        return self.inner_optimizer.memory_learning_rate

    @memory_learning_rate.setter
    def memory_learning_rate(self, rate: float) -> None:
        self.inner_optimizer.memory_learning_rate = rate

    def exclude_from_weight_decay(
        self,
        var_list: Sequence[keras.Variable] | None = None,
        var_names: Sequence[str] | None = None,
    ) -> None:
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

    def check_finite(self, grads: Sequence[Gradient | None]) -> Tensor:
        is_finite = all_finite([grad for grad in grads if grad is not None])
        failures = backend.sum_over_replicas(
            ops.cast(ops.logical_not(is_finite), "float32")
        )
        return ops.equal(failures, 0.0)
