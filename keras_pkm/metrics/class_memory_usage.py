"""How differently two classes of examples use a memory."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_pkm.metrics.class_labels import class_labels
from keras_pkm.metrics.dtypes import INT
from keras_pkm.metrics.exact_sums import ExactCounts
from keras_pkm.metrics.top1_slots import check_shapes
from keras_pkm.metrics.top1_slots import flatten_access
from keras_pkm.metrics.top1_slots import top1_slots
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.tensors import Tensor


@keras.saving.register_keras_serializable("keras_pkm")
class ClassMemoryUsage(keras.metrics.Metric):
    """Divergence and overlap of what two classes of examples read.

    For each slot i, t'⁺ᵢ counts how often it was a head's best slot in examples
    of class 1, and t'⁻ᵢ in examples of class 0. t⁺ and t⁻ are the same counts,
    normalized to sum to 1. `result()` has

    - `kl`: KL(t⁺‖t⁻) in nats. Half a read is added to each t'⁻ᵢ: otherwise it
      would be infinite if class 1 reads a slot that class 0 does not;
    - `outside`: the share of t⁺ in slots that only class 1 reads: how much of
      `kl` depends on the added half read;
    - `iou`: intersection over union, Σ min(t⁺, t⁻) / Σ max(t⁺, t⁻): 1 if both
      classes read alike, 0 if they share no slot;
    - `reads_0`, `reads_1`: the numbers of top-1 reads, Σ t'⁻ and Σ t'⁺.

    The first three are 0 until both classes have been seen. Figures are
    float64, and on JAX float32; `counts` and `totals` are exact integers, up to
    2**51. Under `tf.distribute` the counts of all replicas are summed.

    Args:
        num_slots: int. Slots of the memory,
            `keras_pkm.layers.ProductKeyMemory.num_slots`.
        name: str. Defaults to `"class_memory_usage"`.
        dtype: accepted as in other metrics, but counts have their own dtype.

    Example:

    >>> metric = keras_pkm.metrics.ClassMemoryUsage(num_slots=4)
    >>> slots = [[[[0, 1]], [[2, 3]]], [[[0, 3]], [[1, 0]]]]
    >>> weights = [[[[0.9, 0.1]], [[0.6, 0.4]]], [[[0.7, 0.3]], [[0.8, 0.2]]]]
    >>> metric.update_state(slots, weights, labels=[1, 0])
    >>> figures = metric.result()
    >>> float(figures["outside"]), round(float(figures["iou"]), 3)
    (0.5, 0.333)

    Reference:

    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881), figure 4
    """

    def __init__(
        self,
        num_slots: int,
        name: str = "class_memory_usage",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_slots = positive_int("num_slots", num_slots)
        self._top1 = ExactCounts(self, 2 * self.num_slots, "top1")

    def update_state(
        self,
        slots: npt.ArrayLike,
        weights: npt.ArrayLike,
        labels: npt.ArrayLike,
        padding_mask: npt.ArrayLike | None = None,
    ) -> None:
        """Counts the memory access of one batch.

        Args:
            slots: int tensor of shape `(batch, ..., num_heads, top_k)`.
            weights: float tensor of the same shape. A head whose weights are
                all 0 reads nothing.
            labels: the classes, 0 or 1: numbers of shape `(batch,)` or
                `(batch, 1)`, or one-hot rows of shape `(batch, num_classes)`.
                Examples of other classes are not counted.
            padding_mask: optional bool or int tensor of shape `(batch, ...)`,
                false or 0 at padding, which is not counted.

        Raises:
            ValueError: an argument has another shape, or `labels` are neither
                whole numbers nor one-hot. In a TensorFlow graph, where values
                are not known yet, wrong labels raise
                `tf.errors.InvalidArgumentError`. In functions compiled by JAX
                or XLA, they raise nothing, and their examples are not counted.
        """
        all_slots = ops.convert_to_tensor(slots, "int32")
        read, shares, counted = flatten_access(
            all_slots, weights, padding_mask, self.num_slots
        )
        classes = class_labels(labels, "labels")
        check_shapes(
            "`labels` must have one label for each example of `slots`.",
            all_slots.shape[:1],
            classes.shape,
        )
        # One label for each token.
        of_examples = classes[(..., *[None] * (len(all_slots.shape) - 3))]
        of_tokens = ops.reshape(
            ops.broadcast_to(of_examples, ops.shape(all_slots)[:-2]), (-1,)
        )
        counted *= ops.cast((of_tokens == 0) | (of_tokens == 1), INT)
        cells = (
            top1_slots(read, shares)
            + self.num_slots
            * ops.cast(ops.clip(of_tokens, 0, 1), "int32")[:, None]
        )
        is_read = ops.cast(ops.any(shares != 0, axis=-1), counted.dtype)
        self._top1.add(cells, ops.reshape(is_read * counted[:, None], (-1,)))

    @property
    def counts(self) -> np.ndarray:
        """int64 array of shape `(2, num_slots)`: t'⁻ and t'⁺."""
        return self._top1.totals.reshape(2, -1)

    @property
    def totals(self) -> dict[str, int]:
        """`reads_0` and `reads_1` of the result, exact."""
        reads_0, reads_1 = self.counts.sum(1).tolist()
        return {"reads_0": reads_0, "reads_1": reads_1}

    def result(self) -> dict[str, Tensor]:
        counts = ops.reshape(self._top1.as_float(), (2, -1))
        reads = ops.sum(counts, axis=1)
        is_known = ops.min(reads) > 0
        totals = ops.where(is_known, reads, 1.0)
        shares = counts / totals[:, None]
        other, ours = shares[0], shares[1]
        smoothed = (counts[0] + 0.5) / (totals[0] + 0.5 * self.num_slots)
        ratios = ops.where(ours > 0, ours, 1.0) / smoothed
        # Not `ops.minimum` and `ops.maximum`: with torch they round to float32.
        is_less = ours < other
        common = ops.sum(ops.where(is_less, ours, other))
        union = ops.sum(ops.where(is_less, other, ours))
        return {
            "kl": ops.where(
                is_known,
                ops.sum(ops.where(ours > 0, ours * ops.log(ratios), 0.0)),
                0.0,
            ),
            "outside": ops.where(
                is_known, ops.sum(ops.where(other > 0, 0.0, ours)), 0.0
            ),
            "iou": ops.where(
                is_known,
                common / ops.where(union > 0, union, 1.0),
                0.0,
            ),
            "reads_0": reads[0],
            "reads_1": reads[1],
        }

    def get_config(self) -> dict[str, Any]:
        return {"num_slots": self.num_slots, "name": self.name}
