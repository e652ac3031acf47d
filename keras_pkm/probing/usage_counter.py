"""Counts the reads of all memories of a model."""

from collections.abc import Mapping

import keras
import numpy as np

from keras_pkm.layers.memories import memories
from keras_pkm.metrics.memory_usage import MemoryUsage
from keras_pkm.metrics.numbers import result_numbers
from keras_pkm.ops.tensors import MemoryAccess
from keras_pkm.ops.tensors import Tensor


class UsageCounter:
    """A `MemoryUsage` for each memory of a model.

    Under `tf.distribute` create it in the strategy's scope, and call `update`
    on each replica.

    Args:
        num_slots: The number of slots of each memory, by the number of its
            layer, counted from 1.
    """

    def __init__(self, num_slots: Mapping[int, int]):
        self.num_slots = dict(sorted(num_slots.items()))
        self._metrics = {
            number: MemoryUsage(count)
            for number, count in self.num_slots.items()
        }

    @classmethod
    def of_model(cls, model: keras.Model) -> "UsageCounter":
        """Returns a counter for any model, even one without memory."""
        return cls(
            {
                number: memory.num_slots
                for number, memory in memories(model).items()
            }
        )

    def update(
        self,
        accesses: Mapping[int, MemoryAccess],
        is_token: Tensor | None,
    ) -> None:
        """Counts the reads of a batch.

        Args:
            accesses: Slots and weights of memories, by the number of the
                layer, of shape `(..., num_heads, top_k)`.
            is_token: `(...)`, 0 or false at padding; `None` if there is none.
        """
        for number, (slots, weights) in accesses.items():
            self._metrics[number].update_state(slots, weights, is_token)

    @property
    def variables(self) -> list[keras.Variable]:
        """The variables of all counts."""
        return [
            variable
            for metric in self._metrics.values()
            for variable in metric.variables
        ]

    def reset(self) -> None:
        """Resets all counts."""
        for metric in self._metrics.values():
            metric.reset_state()

    @property
    def figures(self) -> dict[int, dict[str, float]]:
        """The figures of `keras_pkm.metrics.MemoryUsage`, by layer."""
        return {
            number: result_numbers(metric)
            for number, metric in self._metrics.items()
        }

    @property
    def counts(self) -> dict[int, dict[str, np.ndarray]]:
        """`MemoryUsage.counts`, by layer."""
        return {
            number: metric.counts for number, metric in self._metrics.items()
        }
