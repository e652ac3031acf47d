"""How long ago the slots of a memory were last read."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_pkm.metrics.dtypes import INT
from keras_pkm.metrics.dtypes import WIDEST_FLOAT
from keras_pkm.metrics.exact_sums import mean
from keras_pkm.metrics.top1_slots import check_shapes
from keras_pkm.ops.arguments import plain
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.backend import backend
from keras_pkm.ops.tensors import Tensor

#: The step of slots that were never read.
NEVER = -1
#: The largest step that int32 can hold.
_LARGEST = 2**31 - 1
_RULE = "`step` must be below 2**31 and larger than that of the last update"


@keras.saving.register_keras_serializable("keras_pkm")
class MemoryStaleness(keras.metrics.Metric):
    """Records the last checkpoint at which each slot was a top-1 slot.

    Pass it the top-1 reads of one checkpoint after another, on the same
    held-out data, as `keras_pkm.callbacks.MemoryUsageMonitor` does.
    `result()` has the shares of slots that were a head's best slot

    - `fresh`: at the last checkpoint;
    - `stale`: at an earlier checkpoint, but not at the last;
    - `never`: at no checkpoint.

    Under `tf.distribute` the reads of all replicas are summed.

    Stale slots are those that training has drifted away from. Slots never read
    are those that the model has not learned to reach.

    Args:
        num_slots: int. Slots of the memory,
            `keras_pkm.layers.ProductKeyMemory.num_slots`.
        name: str. Defaults to `"memory_staleness"`.
        dtype: accepted as in other metrics, but steps are integers below 2**31.

    Example:

    >>> metric = keras_pkm.metrics.MemoryStaleness(num_slots=4)
    >>> metric.update_state([3, 0, 1, 0], step=100)
    >>> metric.update_state([5, 0, 0, 0], step=200)
    >>> {name: float(value) for name, value in metric.result().items()}
    {'fresh': 0.25, 'stale': 0.25, 'never': 0.5}
    >>> metric.last_steps
    array([200,  -1, 100,  -1])

    Reference:

    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881), figure 2
    """

    def __init__(
        self,
        num_slots: int,
        name: str = "memory_staleness",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_slots = positive_int("num_slots", num_slots)
        self._last = self._steps((self.num_slots,), "last")
        self._newest = self._steps((), "newest")

    def _steps(self, shape: tuple[int, ...], name: str) -> keras.Variable:
        return self.add_variable(
            shape,
            initializer=keras.initializers.Constant(NEVER),
            dtype=INT,
            # All replicas have the same: `update_state` sums their reads.
            aggregation="only_first_replica",
            name=name,
        )

    def update_state(
        self, top1_reads: npt.ArrayLike, step: int | Tensor
    ) -> None:
        """Adds the reads of one checkpoint.

        Args:
            top1_reads: int tensor of shape `(num_slots,)`: how often each slot
                was a head's best slot, `MemoryUsage.counts["top1"]`.
            step: int or scalar int tensor, not negative and below 2**31. The
                checkpoint's step, larger than those of earlier updates.

        Raises:
            ValueError: the step is not larger than the last one, or too large;
                or `top1_reads` has another shape. In a TensorFlow graph, a
                wrong step raises `tf.errors.InvalidArgumentError`. In functions
                compiled by JAX or XLA, it raises nothing, and the update is
                ignored.
        """
        is_read = _is_positive(top1_reads)
        check_shapes(
            "`top1_reads` must have the shape (num_slots,).",
            (self.num_slots,),
            is_read.shape,
        )
        newest = ops.convert_to_tensor(self._newest)
        received = _as_tensor(step)
        new = ops.cast(received, INT)
        is_right = (received <= _LARGEST) & (new > newest)
        if not backend.is_known(is_right):
            backend.assert_later(is_right, f"{_RULE}.", received)
        elif not is_right:
            raise ValueError(
                f"{_RULE}, which was {int(newest)}. "
                f"Received: step={int(received)}."
            )
        is_read = backend.sum_over_replicas(ops.cast(is_read, INT)) > 0
        # A wrong step that could not raise changes nothing.
        last = ops.convert_to_tensor(self._last)
        self._last.assign(ops.where(is_read & is_right, new, last))
        self._newest.assign(ops.where(is_right, new, newest))

    @property
    def last_steps(self) -> np.ndarray:
        """int64 array of shape `(num_slots,)`, -1 for slots never read."""
        return np.array(ops.convert_to_numpy(self._last), "int64")

    def result(self) -> dict[str, Tensor]:
        last = ops.convert_to_tensor(self._last)
        is_never = last == NEVER
        is_fresh = (last == self._newest) & ~is_never
        return {
            "fresh": _share(is_fresh),
            "stale": _share(~is_fresh & ~is_never),
            "never": _share(is_never),
        }

    def reset_state(self) -> None:
        for variable in (self._last, self._newest):
            variable.assign(ops.full(variable.shape, NEVER, INT))

    def get_config(self) -> dict[str, Any]:
        return {"num_slots": self.num_slots, "name": self.name}


def _is_positive(counts: Any) -> Tensor:
    # Arrays are compared before they become tensors, which may be of 32 bits.
    numbers = counts if ops.is_tensor(counts) else np.asarray(counts)
    return ops.convert_to_tensor(numbers > 0)


def _as_tensor(step: int | Tensor) -> Tensor:
    number = plain(step)
    if isinstance(number, int) and number > _LARGEST:
        raise ValueError(f"`step` must be below 2**31. Received: step={step}.")
    return ops.convert_to_tensor(number)


def _share(slots: Tensor) -> Tensor:
    return mean(ops.cast(slots, WIDEST_FLOAT))
