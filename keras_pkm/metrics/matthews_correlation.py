"""Matthews correlation of predicted and true classes."""

from typing import Any

import keras
import numpy.typing as npt
from keras import ops

from keras_pkm.metrics.class_labels import check_values
from keras_pkm.metrics.class_labels import class_labels
from keras_pkm.metrics.dtypes import WIDEST_FLOAT
from keras_pkm.metrics.exact_sums import FloatSums
from keras_pkm.ops.arguments import finite
from keras_pkm.ops.arguments import integer
from keras_pkm.ops.backend import backend
from keras_pkm.ops.tensors import Tensor


@keras.saving.register_keras_serializable("keras_pkm")
class MatthewsCorrelation(keras.metrics.Metric):
    """Correlation of predicted and true classes, the measure of CoLA.

    With the confusion matrix C (rows: true classes), its trace c, its sum s,
    the sums tₖ of its rows and pₖ of its columns,

        (c s - Σ tₖ pₖ) / √((s² - Σ pₖ²) (s² - Σ tₖ²))

    which is 1 for perfect predictions and around 0 for random ones. It is 0 if
    all predictions, or all labels, are of one class. The result is computed
    from counts over all data; it is not a mean over batches.

    Args:
        num_classes: int. Defaults to `2`.
        threshold: float. If predictions are single numbers, such as a sigmoid's
            outputs, larger ones mean class 1. Pass `0` for single logits.
            Defaults to `0.5`.
        name: str. Defaults to `"matthews_correlation"`.
        dtype: accepted as in other metrics, but weights of examples are summed
            in float64, or on JAX in pairs of float32.

    Example:

    >>> metric = keras_pkm.metrics.MatthewsCorrelation()
    >>> logits = [[2.0, 1.0], [0.5, 3.0], [0.1, 0.2], [1.0, -1.0]]
    >>> metric.update_state([0, 1, 0, 0], logits)
    >>> round(float(metric.result()), 4)
    0.5774
    >>> metric.update_state([[0, 1]], [[0.2, 0.8]])  # one-hot labels
    >>> round(float(metric.result()), 4)
    0.6667

    References:

    - [Matthews, 1975](https://doi.org/10.1016/0005-2795(75)90109-9)
    - [Gorodkin, 2004](https://doi.org/10.1016/j.compbiolchem.2004.09.006),
      for more than two classes.
    """

    def __init__(
        self,
        num_classes: int = 2,
        name: str = "matthews_correlation",
        dtype: str | keras.DTypePolicy | None = None,
        threshold: float = 0.5,
    ):
        super().__init__(name=name, dtype=dtype)
        self.num_classes = integer("num_classes", num_classes, least=2)
        self.threshold = finite("threshold", threshold)
        self._confusion = FloatSums(self, self.num_classes**2, "confusion")

    def update_state(
        self,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> None:
        """Counts one batch.

        Args:
            y_true: the classes: numbers of shape `(batch,)` or `(batch, 1)`,
                of any dtype; or one-hot rows of shape `(batch, num_classes)`,
                which may be smoothed: the largest entry is the class.
            y_pred: float tensor of shape `(batch, num_classes)`, logits or
                probabilities; the largest one is the predicted class. With
                two classes, the shape may also be `(batch, 1)` or `(batch,)`:
                the probability of class 1, or its logit if `threshold` is not
                between 0 and 1.
            sample_weight: optional number, or tensor of shape `(batch,)` or
                `(batch, 1)`.

        Raises:
            ValueError: an argument has another shape; `y_true` has other
                values; or `threshold` is a probability, but single predictions
                are not. In a TensorFlow graph, where values are not known yet,
                wrong values raise `tf.errors.InvalidArgumentError`. In
                functions compiled by JAX or XLA, they raise nothing, and the
                result is NaN.
        """
        true = class_labels(y_true, "y_true", self.num_classes)
        predicted = self._predicted_classes(ops.convert_to_tensor(y_pred))
        _check_lengths(y_true=true, y_pred=predicted)
        weights = _weights(sample_weight, true)
        # Wrong values that could not raise; nothing may drop them. (A constant
        # NaN would stop every graph under `enable_check_numerics`.)
        is_wrong = (true < 0) | (predicted < 0)
        cells = true * self.num_classes + predicted
        signs = ops.cast(ops.where(is_wrong, -1, 1), weights.dtype)
        self._confusion.add(
            ops.where(is_wrong, 0, cells), weights * ops.sqrt(signs)
        )

    def _predicted_classes(self, y_pred: Tensor) -> Tensor:
        """Classes, int32; -1 for values that are wrong but could not raise."""
        shape = y_pred.shape
        if len(shape) == 2 and shape[-1] == self.num_classes:
            return ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        if self.num_classes == 2 and (len(shape) == 1 or shape[1:] == (1,)):
            scores = ops.reshape(ops.cast(y_pred, WIDEST_FLOAT), (-1,))
            classes = ops.cast(scores > self.threshold, "int32")
            if 0 < self.threshold < 1:
                # NaN is no class; a model that diverged may go on.
                is_right = ~((scores < 0) | (scores > 1))
                check_values(
                    is_right,
                    "`y_pred` of a single number must be the probability of "
                    f"class 1 if `threshold` is {self.threshold}; for logits "
                    "pass `threshold=0`.",
                    y_pred,
                )
                classes = ops.where(is_right, classes, -1)
            return classes
        raise ValueError(
            f"`y_pred` must have the shape (batch, {self.num_classes}), or "
            "with two classes (batch, 1) or (batch,). "
            f"Received: y_pred of shape {tuple(shape)}."
        )

    def result(self) -> Tensor:
        # The formula of the class, but with differences of larger numbers
        # replaced by sums of others: if nearly all examples are of one class,
        # such differences would lose most digits of float32.
        confusion = ops.reshape(
            self._confusion.as_float(), (self.num_classes, self.num_classes)
        )
        total = ops.sum(confusion)
        shares = confusion / ops.where(total == 0, 1.0, total)
        # For each class k, the sums of row k without column k, of column k
        # without row k, and of all that stands in neither of them.
        of_row = ops.diagonal(_sums_of_others(ops.transpose(shares)))
        of_column = ops.diagonal(_sums_of_others(shares))
        outside = ops.diagonal(
            _sums_of_others(ops.transpose(_sums_of_others(shares)))
        )
        numerator = ops.sum(ops.diagonal(shares) * outside - of_row * of_column)
        true, predicted = ops.sum(shares, axis=1), ops.sum(shares, axis=0)
        squared = ops.sum(predicted * _sums_of_others(predicted)) * ops.sum(
            true * _sums_of_others(true)
        )
        # NaN stays NaN.
        is_constant = squared <= 0
        return ops.where(
            is_constant,
            0.0,
            numerator / ops.sqrt(ops.where(is_constant, 1.0, squared)),
        )

    def get_config(self) -> dict[str, Any]:
        return {
            "num_classes": self.num_classes,
            "threshold": self.threshold,
            "name": self.name,
        }


def _sums_of_others(numbers: Tensor) -> Tensor:
    """Returns, for each entry, the sum of the others along the first axis."""
    return _sums_before(numbers) + ops.flip(
        _sums_before(ops.flip(numbers, 0)), 0
    )


def _sums_before(numbers: Tensor) -> Tensor:
    """Returns, for each entry, the sum of those before it."""
    # Not `ops.cumsum`: with torch it sums in float32, whatever the dtype.
    sums = _moved_down(numbers, 1)
    width = 1
    while width < numbers.shape[0]:
        # Sums of up to `width` entries become sums of twice as many.
        sums = sums + _moved_down(sums, width)
        width *= 2
    return sums


def _moved_down(numbers: Tensor, by: int) -> Tensor:
    return ops.concatenate(
        [ops.zeros_like(numbers[:by]), numbers[:-by]], axis=0
    )


def _weights(sample_weight: npt.ArrayLike | None, true: Tensor) -> Tensor:
    """A weight for each example, of the widest float dtype."""
    if sample_weight is None:
        return ops.ones_like(true, WIDEST_FLOAT)
    weights = ops.cast(ops.convert_to_tensor(sample_weight), WIDEST_FLOAT)
    shape = tuple(weights.shape)
    if not shape:
        return ops.broadcast_to(weights, ops.shape(true))
    if len(shape) > 2 or shape[1:] not in ((), (1,)):
        raise ValueError(
            "`sample_weight` must have the shape (batch,) or (batch, 1). "
            f"Received: sample_weight of shape {shape}."
        )
    weights = ops.reshape(weights, (-1,))
    _check_lengths(y_true=true, sample_weight=weights)
    return weights


def _check_lengths(**tensors: Tensor) -> None:
    """Checks that tensors of shape `(batch,)` have the same length."""
    (one, other) = tensors
    lengths = [ops.shape(each)[0] for each in tensors.values()]
    rule = f"`{one}` and `{other}` must have the same number of examples."
    if all(isinstance(each, int) for each in lengths):
        if lengths[0] != lengths[1]:
            raise ValueError(f"{rule} Received: {lengths[0]} and {lengths[1]}.")
        return
    backend.assert_later(ops.equal(*lengths), rule, ops.stack(lengths))
