"""Sums that do not lose digits, even without numbers of 64 bits."""

import keras
import numpy as np
from keras import ops

from keras_pkm.metrics.dtypes import INT
from keras_pkm.metrics.dtypes import WIDEST_FLOAT
from keras_pkm.ops.tensors import Tensor

# The lower parts of up to 2**11 replicas can be summed as int32.
_BASE = 2**20


class _TwoParts:
    """Numbers of a metric, each in two variables."""

    dtype: str

    def __init__(self, metric: keras.metrics.Metric, size: int, name: str):
        self._size = size
        self._high, self._low = (
            metric.add_variable(
                (size,),
                initializer="zeros",
                dtype=self.dtype,
                name=f"{name}_{part}",
            )
            for part in ("high", "low")
        )

    def _as_numpy(self, dtype: str) -> list[np.ndarray]:
        return [
            np.array(ops.convert_to_numpy(part), dtype)
            for part in (self._high, self._low)
        ]


class ExactCounts(_TwoParts):
    """Counts of a metric, exact up to 2**51, in two integer variables.

    A count is `high * 2**20 + low`. Both parts can be summed over replicas.

    Args:
        metric: The metric that gets the variables.
        size: The number of counts.
        name: The name of the counts.
    """

    dtype = INT

    def add(self, places: Tensor, amounts: Tensor) -> None:
        """Adds to some counts.

        Args:
            places: int tensor of any shape: the counts to add to, which may
                be repeated.
            amounts: tensor of dtype `INT` with as many entries, not
                negative. Their sum for one count must be less than 2**30.
        """
        low = self._low + _sum_by_place(places, amounts, self._size, INT)
        self._high.assign(self._high + low // _BASE)
        self._low.assign(low % _BASE)

    def as_float(self) -> Tensor:
        """Returns the counts, rounded to the backend's widest float dtype."""
        high, low = (
            ops.cast(ops.convert_to_tensor(part), WIDEST_FLOAT)
            for part in (self._high, self._low)
        )
        return high * _BASE + low

    @property
    def totals(self) -> np.ndarray:
        """The counts, int64 array of shape `(size,)`."""
        high, low = self._as_numpy("int64")
        return high * _BASE + low


class FloatSums(_TwoParts):
    """Sums of floats of a metric, of about twice the precision of its dtype.

    A sum is `high + low`. `low` has what rounding took from `high`, so that
    small numbers are not lost when they are added to a large sum.

    Args:
        metric: The metric that gets the variables.
        size: The number of sums.
        name: The name of the sums.
    """

    dtype = WIDEST_FLOAT

    def add(self, places: Tensor, amounts: Tensor) -> None:
        """Adds to some sums.

        Args:
            places: int tensor of any shape: the sums to add to, which may be
                repeated.
            amounts: tensor of dtype `WIDEST_FLOAT` with as many entries.
        """
        added = _sum_by_place(places, amounts, self._size, WIDEST_FLOAT)
        high, lost = _sum_and_lost(ops.convert_to_tensor(self._high), added)
        high, low = _sum_and_lost(high, self._low + lost)
        self._high.assign(high)
        self._low.assign(low)

    def as_float(self) -> Tensor:
        """Returns the sums, rounded to the backend's widest float dtype."""
        return self._high + self._low

    @property
    def totals(self) -> np.ndarray:
        """The sums, float64 array of shape `(size,)`."""
        high, low = self._as_numpy("float64")
        return high + low


def mean(numbers: Tensor) -> Tensor:
    """Returns the mean of floats in their own dtype."""
    # Not `ops.mean`: with torch it computes in float32, whatever the dtype.
    return ops.sum(numbers) / numbers.shape[0]


def _sum_by_place(
    places: Tensor, amounts: Tensor, size: int, dtype: str
) -> Tensor:
    # Not `ops.segment_sum`: with torch it sums in float32, whatever the dtype.
    return ops.scatter_update(
        ops.zeros((size,), dtype),
        ops.reshape(places, (-1, 1)),
        ops.reshape(amounts, (-1,)),
        reduction="add",
    )


def _sum_and_lost(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Returns a sum and what rounding took from it.

    This is the two-sum of Knuth and Møller, exact in any order of magnitudes.
    """
    rounded = a + b
    of_b = rounded - a
    return rounded, (a - (rounded - of_b)) + (b - of_b)
