"""How much of a memory is used, and how evenly."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_pkm.metrics.dtypes import WIDEST_FLOAT
from keras_pkm.metrics.exact_sums import ExactCounts
from keras_pkm.metrics.exact_sums import FloatSums
from keras_pkm.metrics.exact_sums import mean
from keras_pkm.metrics.top1_slots import flatten_access
from keras_pkm.metrics.top1_slots import top1_slots
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.tensors import Tensor


@keras.saving.register_keras_serializable("keras_pkm")
class MemoryUsage(keras.metrics.Metric):
    """Memory utilization of one product-key memory.

    Over all tokens seen, for each slot i: u'ᵢ counts how often it was read,
    t'ᵢ how often it was a head's best slot, and w'ᵢ sums its weights. u and w
    are u' and w' normalized to sum to 1. `result()` has

    - `mu`: memory usage, the share of slots with u' > 0;
    - `top1_mu`: top-1 memory usage, the share of slots with t' > 0: each head
      of each token counts its best slot;
    - `top1_token_mu`: the same, but each token counts only one slot, the one
      with the largest weight among all its heads;
    - `kl_u`, `kl_w`: Kullback-Leibler divergence of u and w from the uniform
      distribution, ln(slots) + Σ p ln p, in nats: 0 if all slots are read
      equally, ln(slots) if all reads are of one slot;
    - `top1_reads`: the number of top-1 reads, Σ t'. Usage grows with it: if
      there are fewer than five top-1 reads per slot, report this number with
      the other figures.

    Figures are float64, and on JAX float32; `counts` and `totals` are exact
    integers, up to 2**51. The weights of a batch are summed in the dtype of the
    figures, and over batches with twice its precision. Under `tf.distribute`
    the counts of all replicas are summed.

    Args:
        num_slots: int. Slots of the memory,
            `keras_pkm.layers.ProductKeyMemory.num_slots`.
        name: str. Defaults to `"memory_usage"`.
        dtype: accepted as in other metrics, but counts and sums have their own
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
        self._sums: dict[str, ExactCounts | FloatSums] = {
            name: (FloatSums if name == "weights" else ExactCounts)(
                self, self.num_slots, name
            )
            for name in ("reads", "top1", "top1_of_token", "weights")
        }

    def update_state(
        self,
        slots: npt.ArrayLike,
        weights: npt.ArrayLike,
        padding_mask: npt.ArrayLike | None = None,
    ) -> None:
        """Counts one memory access.

        Args:
            slots: int tensor of shape `(..., num_heads, top_k)`.
            weights: float tensor of the same shape. A slot whose weight is 0
                is not read.
            padding_mask: optional bool or int tensor of shape `(...)`, false
                or 0 at padding, which is not counted.
        """
        read, shares, counted = flatten_access(
            slots, weights, padding_mask, self.num_slots
        )
        heads, top_k = read.shape[-2:]
        is_read = (shares != 0) & ops.cast(counted, "bool")[:, None, None]
        per_read = ops.reshape(ops.cast(is_read, counted.dtype), (-1,))
        of_heads = ops.any(is_read, axis=-1)

        self._sums["reads"].add(read, per_read)
        self._sums["weights"].add(
            read,
            # Not a product: padding may contain NaN.
            ops.where(per_read > 0, ops.reshape(shares, (-1,)), 0.0),
        )
        self._sums["top1"].add(
            top1_slots(read, shares),
            ops.reshape(ops.cast(of_heads, counted.dtype), (-1,)),
        )
        flat = (-1, heads * top_k)
        self._sums["top1_of_token"].add(
            top1_slots(ops.reshape(read, flat), ops.reshape(shares, flat)),
            ops.cast(ops.any(of_heads, axis=-1), counted.dtype),
        )

    @property
    def counts(self) -> dict[str, np.ndarray]:
        """The counts behind the figures, as arrays of shape `(num_slots,)`.

        `"reads"` is u', `"top1"` is t', `"top1_of_token"` the same per token
        (all int64), and `"weights"` is w' (float64).
        """
        return {name: sums.totals for name, sums in self._sums.items()}

    @property
    def totals(self) -> dict[str, int]:
        """`top1_reads` of the result, exact."""
        return {"top1_reads": int(self._sums["top1"].totals.sum())}

    def result(self) -> dict[str, Tensor]:
        reads, top1, top1_of_token, weights = (
            sums.as_float() for sums in self._sums.values()
        )
        return {
            "mu": _share_used(reads),
            "top1_mu": _share_used(top1),
            "top1_token_mu": _share_used(top1_of_token),
            "kl_u": _divergence_from_uniform(reads),
            "kl_w": _divergence_from_uniform(weights),
            "top1_reads": ops.sum(top1),
        }

    def get_config(self) -> dict[str, Any]:
        return {"num_slots": self.num_slots, "name": self.name}


def _share_used(counts: Tensor) -> Tensor:
    return mean(ops.cast(counts > 0, WIDEST_FLOAT))


def _divergence_from_uniform(amounts: Tensor) -> Tensor:
    """`ln(slots) + Σ p ln p`, or 0 if nothing has been counted yet.

    It is computed as the mean of r ln r, with r = p slots. The difference of
    two larger numbers would lose digits, of which float32 has few.
    """
    even = mean(amounts)
    ratios = amounts / ops.where(even > 0, even, 1.0)
    return mean(ratios * ops.log(ops.where(ratios > 0, ratios, 1.0)))
