"""Learning rate that warms up and then decays linearly to zero."""

from typing import Any

import keras
from keras import ops

from keras_pkm.ops.arguments import finite
from keras_pkm.ops.arguments import integer
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.tensors import Tensor


@keras.saving.register_keras_serializable("keras_pkm")
class LinearWarmup(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up from zero, then linear decay to zero, as for BERT.

        rate(t) = peak · t / warmup_steps                       t < warmup_steps
        rate(t) = peak · (total_steps - t) / (total_steps - warmup_steps)  after

    Args:
        peak: float. The rate at step `warmup_steps`.
        warmup_steps: int. Length of the warm-up; `0` for none.
        total_steps: int. The step at which the rate reaches zero; it stays
            there.
        name: optional str.

    Example:

    >>> schedule = keras_pkm.optimizers.LinearWarmup(
    ...     1e-4, warmup_steps=10, total_steps=100
    ... )
    >>> [round(float(schedule(step)), 6) for step in (0, 5, 10, 55, 100)]
    [0.0, 5e-05, 0.0001, 5e-05, 0.0]
    """

    def __init__(
        self,
        peak: float,
        warmup_steps: int,
        total_steps: int,
        name: str = "linear_warmup",
    ):
        super().__init__()
        self.warmup_steps = integer("warmup_steps", warmup_steps, least=0)
        self.total_steps = positive_int("total_steps", total_steps)
        if self.warmup_steps >= self.total_steps:
            raise ValueError(
                "`warmup_steps` must be at least 0 and less than "
                f"`total_steps`. Received: warmup_steps={warmup_steps}, "
                f"total_steps={total_steps}."
            )
        self.peak = finite("peak", peak, least=0)
        self.name = name

    def __call__(self, step: int | Tensor) -> Tensor:
        step = ops.cast(step, "float32")
        rise = step / max(self.warmup_steps, 1)
        fall = (self.total_steps - step) / (
            self.total_steps - self.warmup_steps
        )
        slope = ops.where(step < self.warmup_steps, rise, fall)
        return self.peak * ops.maximum(slope, 0.0)

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "name": self.name,
        }
