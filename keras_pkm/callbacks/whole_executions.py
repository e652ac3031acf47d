"""Checks that the steps of an epoch can be counted."""

from typing import Any

import keras


def check_executions(model: keras.Model, params: dict[str, Any]) -> None:
    """Checks that an epoch consists of whole executions.

    With `steps_per_execution` several steps end at once, and Keras does not
    tell how many the last execution of an epoch had: it takes a full one if the
    data has more batches, whatever `steps_per_epoch` is.

    Args:
        model: The model, which is being trained.
        params: `Callback.params`.

    Raises:
        ValueError: the number of steps is unknown, or not a multiple of
            `steps_per_execution`.
    """
    size, steps = model.steps_per_execution, params.get("steps")
    if size > 1 and (steps is None or steps % size):
        raise ValueError(
            "With `steps_per_execution` above 1, the steps of an epoch must be "
            f"a multiple of it to be counted. Received: {size} and "
            f"{steps or 'an unknown number of'} steps. Pass `steps_per_epoch`, "
            "or compile with `steps_per_execution=1`."
        )
