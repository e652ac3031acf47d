"""How many steps of an epoch are done."""

from typing import Any


def steps_done(params: dict[str, Any], batch: int) -> int:
    """Returns the number of steps done at `on_train_batch_end`.

    With `steps_per_execution` several steps end at once, of which Keras counts
    the last ones although an epoch may have fewer.

    Args:
        params: `Callback.params`.
        batch: The number of the batch, as Keras gives it to the callback.
    """
    return min(batch + 1, params.get("steps") or batch + 1)
