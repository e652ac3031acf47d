"""Counts the steps that the optimizer skips for a non-finite gradient."""

from typing import Any

import keras

from keras_pkm.callbacks.whole_executions import check_executions
from keras_pkm.ops.arguments import positive_int_or_none
from keras_pkm.trainers.default_optimizer import count_applied


class SkippedSteps(keras.callbacks.Callback):
    """Counts skipped steps, and ends training after too many in a row.

    `keras_pkm.optimizers.PKMAdam` and `LossScaleOptimizer` skip a step whose
    loss or gradient is not finite. The logs of each epoch get the number of
    steps skipped so far, as `skipped_steps`. Other optimizers of Keras never
    skip a step; use `keras.callbacks.TerminateOnNaN` with them.

    Args:
        limit: optional int, at least 1. The number of skipped steps in a row
            that raises an error. Defaults to `None`, which never raises one:
            with loss scaling a few skipped steps are normal.

    Attributes:
        total: int. Steps skipped since training began.
        in_a_row: int. Steps skipped since the last step that was taken.

    Raises:
        FloatingPointError: `limit` steps in a row were skipped.
        ValueError: with `steps_per_execution`, the number of steps of an epoch
            is unknown or not a multiple of it.

    Example:

    >>> model = keras.Sequential([keras.layers.Dense(1)])
    >>> model.compile(
    ...     keras_pkm.optimizers.PKMAdam(), loss="mse"
    ... )
    >>> inputs = np.ones((8, 2))
    >>> inputs[0] = np.nan
    >>> skipped = keras_pkm.callbacks.SkippedSteps()
    >>> history = model.fit(
    ...     inputs,
    ...     np.ones((8, 1)),
    ...     batch_size=2,
    ...     callbacks=[skipped],
    ...     verbose=0,
    ... )
    >>> skipped.total, history.history["skipped_steps"]
    (1, [1])
    """

    def __init__(self, limit: int | None = None):
        super().__init__()
        self.limit = positive_int_or_none("limit", limit)
        self.total = 0
        self.in_a_row = 0
        self._applied = 0
        self._steps = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        check_executions(self.model, self.params)
        self.total = self.in_a_row = 0
        self._applied = self._count()

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        self._steps = 0

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        done = batch + 1
        steps, self._steps = done - self._steps, done
        applied, self._applied = self._count() - self._applied, self._count()
        skipped = steps - applied
        self.total += skipped
        self.in_a_row = 0 if applied else self.in_a_row + skipped
        if self.limit is not None and self.in_a_row >= self.limit:
            raise FloatingPointError(
                "The loss or its gradient was not finite at "
                f"{self.in_a_row} steps in a row. A lower learning rate or "
                "clipped gradients (`global_clipnorm`) help."
            )

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        if logs is not None:
            logs["skipped_steps"] = self.total

    def _count(self) -> int:
        return int(count_applied(self.model.optimizer).numpy())
