"""How much of a memory is used, and how evenly."""

import math
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from keras import ops

from keras_pkm.metrics.top1_slots import flatten_access
from keras_pkm.metrics.top1_slots import top1_slots
from keras_pkm.ops.arguments import positive_int


@keras.saving.register_keras_serializable("keras_pkm")
class MemoryUsage(keras.metrics.Metric):
    """Memory utilization of one product-key memory.

    Over all tokens seen, for each slot i: u'ᵢ counts how often it was read,
    t'ᵢ how often it was a head's best slot, and w'ᵢ sums its weights. u and w
    are u' and w' normalized to sum to 1. `result()` has

    - `mu`: memory usage, the share of slots with u' > 0;
    - `top1_mu`: top-1 memory usage, the share of slots with t' > 0: each head
      of each token counts its best slot;
    - `top1_token_mu`: the same, but each token counts one slot, that of the
      largest weight among all its heads;
    - `kl_u`, `kl_w`: Kullback-Leibler divergence of u and w from the uniform
      distribution, ln(slots) + Σ p ln p, in nats: 0 if all slots are read
      alike, ln(slots) if all reads fall on one;
    - `top1_reads`: the number of top-1 reads, Σ t'. Usage grows with it: if
      there are fewer than five top-1 reads a slot, state the number beside
      the figures.

    Counts are exact integers of any size; weights are summed in float64. Under
    `tf.distribute` the counts of all replicas are summed.

    Args:
        num_slots: int. Slots of the memory,
            `keras_pkm.layers.ProductKeyMemory.num_slots`.
        name: str. Defaults to `"memory_usage"`.
        dtype: accepted as by other metrics. Counts and sums have their own
            dtypes.

    Example:

    >>> metric = keras_pkm.metrics.MemoryUsage(num_slots=4)
    >>> slots = [[[0, 1]], [[0, 3]]]  # (tokens, heads, top_k)
    >>> weights = [[[0.75, 0.25]], [[0.5, 0.5]]]
    >>> metric.update_state(slots, weights)
    >>> figures = metric.result()
    >>> float(figures["mu"]), float(figures["top1_mu"])
    (0.75, 0.25)

    References:

    - [Lample et al., 2019](https://arxiv.org/abs/1907.05242), section 4.4
    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881), section 4.3
    """

    def __init__(
        self,
        num_slots: int,
        name: str = "memory_usage",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_slots = positive_int("num_slots", num_slots)
        self._reads = self._counter("reads", "int64")
        self._top1 = self._counter("top1", "int64")
        self._top1_of_token = self._counter("top1_of_token", "int64")
        self._weights = self._counter("weights", "float64")

    def _counter(self, name: str, dtype: str) -> keras.Variable:
        return self.add_variable(
            (self.num_slots,), initializer="zeros", dtype=dtype, name=name
        )

    def update_state(
        self,
        slots: npt.ArrayLike,
        weights: npt.ArrayLike,
        padding_mask: npt.ArrayLike | None = None,
    ) -> None:
        """Counts one memory access.

        Args:
            slots: int tensor of shape `(..., num_heads, top_k)`.
            weights: float tensor of the same shape.
            padding_mask: optional bool or int tensor of shape `(...)`, false
                or 0 at padding, which is not counted.
        """
        read, shares, counted = flatten_access(slots, weights, padding_mask)
        heads, top_k = read.shape[-2:]
        per_head = ops.repeat(counted, heads)

        self._add(self._reads, read, ops.repeat(per_head, top_k))
        self._add(
            self._weights,
            read,
            ops.reshape(shares, (-1,))
            * ops.cast(ops.repeat(per_head, top_k), "float64"),
        )
        self._add(self._top1, top1_slots(read, shares), per_head)
        flat = (-1, heads * top_k)
        self._add(
            self._top1_of_token,
            top1_slots(ops.reshape(read, flat), ops.reshape(shares, flat)),
            counted,
        )

    def _add(
        self, counter: keras.Variable, slots: tf.Tensor, amounts: tf.Tensor
    ) -> None:
        counter.assign_add(
            ops.segment_sum(amounts, ops.reshape(slots, (-1,)), self.num_slots)
        )

    @property
    def counts(self) -> dict[str, np.ndarray]:
        """The counts behind the figures, as arrays of shape `(num_slots,)`.

        `"reads"` is u', `"top1"` is t', `"top1_of_token"` the same per token
        (all int64), and `"weights"` is w' (float64).
        """
        return {
            "reads": np.array(self._reads),
            "top1": np.array(self._top1),
            "top1_of_token": np.array(self._top1_of_token),
            "weights": np.array(self._weights),
        }

    def result(self) -> dict[str, tf.Tensor]:
        return {
            "mu": _share_used(self._reads),
            "top1_mu": _share_used(self._top1),
            "top1_token_mu": _share_used(self._top1_of_token),
            "kl_u": self._divergence_from_uniform(self._reads),
            "kl_w": self._divergence_from_uniform(self._weights),
            "top1_reads": ops.sum(self._top1),
        }

    def _divergence_from_uniform(self, amounts: keras.Variable) -> tf.Tensor:
        """`ln(slots) + Σ p ln p`, or 0 if nothing has been counted yet."""
        amounts = ops.cast(amounts, "float64")
        total = ops.sum(amounts)
        p = amounts / ops.where(total > 0, total, 1.0)
        entropy = -ops.sum(p * ops.log(ops.where(p > 0, p, 1.0)))
        return ops.where(total > 0, math.log(self.num_slots) - entropy, 0.0)

    def get_config(self) -> dict[str, Any]:
        return {"num_slots": self.num_slots, "name": self.name}


def _share_used(counts: keras.Variable) -> tf.Tensor:
    return ops.mean(ops.cast(ops.convert_to_tensor(counts) > 0, "float64"))
