"""Matthews correlation of predicted and true classes."""

from typing import Any

import keras
import numpy.typing as npt
import tensorflow as tf
from keras import ops

from keras_pkm.ops.arguments import finite


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
        threshold: float. A prediction of a single number, such as a sigmoid's
            output, means class 1 if it is larger. Defaults to `0.5`.
        name: str. Defaults to `"matthews_correlation"`.
        dtype: accepted as by other metrics. Counts are float64.

    Example:

    >>> metric = keras_pkm.metrics.MatthewsCorrelation()
    >>> logits = [[2.0, 1.0], [0.5, 3.0], [0.1, 0.2], [1.0, -1.0]]
    >>> metric.update_state([0, 1, 0, 0], logits)
    >>> round(float(metric.result()), 4)
    0.5774

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
        if num_classes < 2:
            raise ValueError(
                "`num_classes` must be at least 2. "
                f"Received: num_classes={num_classes}."
            )
        self.num_classes = int(num_classes)
        self.threshold = finite("threshold", threshold)
        self._confusion = self.add_variable(
            (self.num_classes, self.num_classes),
            initializer="zeros",
            dtype="float64",
            name="confusion",
        )

    def update_state(
        self,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> None:
        """Counts one batch.

        Args:
            y_true: int tensor of shape `(batch,)` or `(batch, 1)`, the classes.
            y_pred: float tensor of shape `(batch, num_classes)`, logits or
                probabilities; the largest one is the predicted class. With
                two classes also of shape `(batch, 1)` or `(batch,)`: the
                probability of class 1.
            sample_weight: optional tensor of the shape of `y_true`.

        Raises:
            ValueError: `y_pred` has another shape.
        """
        true = ops.reshape(ops.cast(y_true, "int32"), (-1,))
        predicted = self._predicted_classes(ops.convert_to_tensor(y_pred))
        if sample_weight is None:
            weights = ops.ones_like(true, "float64")
        else:
            weights = ops.reshape(ops.cast(sample_weight, "float64"), (-1,))
        cells = ops.segment_sum(
            weights, true * self.num_classes + predicted, self.num_classes**2
        )
        self._confusion.assign_add(
            ops.reshape(cells, (self.num_classes, self.num_classes))
        )

    def _predicted_classes(self, y_pred: tf.Tensor) -> tf.Tensor:
        shape = y_pred.shape
        if len(shape) == 2 and shape[-1] == self.num_classes:
            return ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        if self.num_classes == 2 and (len(shape) == 1 or shape[1:] == (1,)):
            classes = ops.cast(y_pred > self.threshold, "int32")
            return ops.reshape(classes, (-1,))
        raise ValueError(
            f"`y_pred` must have the shape (batch, {self.num_classes}), or "
            "with two classes (batch, 1) or (batch,). "
            f"Received: y_pred of shape {tuple(shape)}."
        )

    def result(self) -> tf.Tensor:
        confusion = ops.convert_to_tensor(self._confusion)
        total = ops.sum(confusion)
        true, predicted = ops.sum(confusion, axis=1), ops.sum(confusion, axis=0)
        numerator = ops.trace(confusion) * total - ops.sum(true * predicted)
        squared = (total**2 - ops.sum(predicted**2)) * (
            total**2 - ops.sum(true**2)
        )
        return ops.where(
            squared > 0,
            numerator / ops.sqrt(ops.where(squared > 0, squared, 1.0)),
            0.0,
        )

    def get_config(self) -> dict[str, Any]:
        return {
            "num_classes": self.num_classes,
            "threshold": self.threshold,
            "name": self.name,
        }
