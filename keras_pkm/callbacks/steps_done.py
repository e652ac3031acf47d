"""Counts the steps of an epoch that are done."""

from typing import Any


def steps_done(params: dict[str, Any], batch: int) -> int:
    """Returns the number of steps done at `on_train_batch_end`.

    With `steps_per_execution` several steps end at once. Keras counts a full
    execution even where the epoch ends before it is full.

    Args:
        params: `Callback.params`.
        batch: The number of the batch, as Keras passes it to the callback.
    """
    return min(batch + 1, params.get("steps") or batch + 1)
