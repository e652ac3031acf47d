"""Makes the optimizer of all commands that train."""

from typing import Any
from typing import Literal

import keras

from keras_pkm.optimizers import LinearWarmup
from keras_pkm.optimizers import PKMAdam


def make_optimizer(
    *,
    learning_rate: float,
    memory_learning_rate: float,
    memory_schedule: Literal["constant", "linear"],
    steps: int,
    warmup_ratio: float,
    weight_decay: float | None,
    clip_norm: float | None,
    reduction: Literal["sparse", "dense"] = "sparse",
    **options: Any,
) -> keras.optimizers.Optimizer:
    """Returns `PKMAdam` with linear warm-up and decay."""

    def schedule(peak: float) -> LinearWarmup:
        return LinearWarmup(peak, int(warmup_ratio * steps), steps)

    return PKMAdam(
        learning_rate=schedule(learning_rate),
        memory_learning_rate=(
            schedule(memory_learning_rate)
            if memory_schedule == "linear"
            else memory_learning_rate
        ),
        weight_decay=weight_decay or None,
        global_clipnorm=clip_norm,
        reduction=reduction,
        **options,
    )
