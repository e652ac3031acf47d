"""Class numbers of labels, in whatever form users have them."""

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_pkm.metrics.dtypes import WIDEST_FLOAT
from keras_pkm.metrics.dtypes import WIDEST_INT
from keras_pkm.ops.backend import backend
from keras_pkm.ops.tensors import Tensor

_INT32 = np.iinfo("int32")


def class_labels(
    labels: npt.ArrayLike, name: str, num_classes: int | None = None
) -> Tensor:
    """Returns the classes of labels, an int32 tensor of shape `(batch,)`.

    Where nothing can be raised, in a function that JAX or XLA compiles, the
    class of a label that is none is -1.

    Args:
        labels: Class numbers of shape `(batch,)` or `(batch, 1)`, of any dtype;
            or one row for each example, of shape `(batch, num_classes)`, which
            is one-hot or a distribution such as a smoothed one-hot row. Its
            largest entry is the class.
        name: The argument, for errors.
        num_classes: The number of classes. Defaults to `None`: any number, so
            that all class numbers are allowed.

    Raises:
        ValueError: the labels have another shape, are no whole numbers or
            probabilities, or are out of range. In a graph of TensorFlow, where
            values are not known yet, it is `tf.errors.InvalidArgumentError`.
    """
    values = _as_tensor(labels, name)
    shape = tuple(values.shape)
    if len(shape) == 1 or (len(shape) == 2 and shape[1] == 1):
        flat = _as_widest(ops.reshape(values, (-1,)))
        rule = "whole numbers"
        is_right = flat % 1 == 0
        if num_classes is not None:
            rule += f" from 0 to {num_classes - 1}"
            is_right &= (flat >= 0) & (flat < num_classes)
        check_values(
            is_right,
            f"`{name}` must be class numbers, {rule}, or have a row for each "
            "example, with an entry for each class.",
            values,
        )
        # Larger numbers must not become other classes.
        flat = ops.clip(flat, _INT32.min, _INT32.max)
        return ops.where(is_right, ops.cast(flat, "int32"), -1)
    if len(shape) == 2 and (
        shape[1] == num_classes if num_classes else shape[1] is not None
    ):
        rows = ops.cast(values, WIDEST_FLOAT)
        # Not a maximum: there may be no row.
        classes = ops.cast(ops.argmax(rows, axis=-1), "int32")
        largest = ops.take_along_axis(rows, classes[:, None], axis=-1)
        is_right = (
            ops.all(rows >= 0, axis=-1)
            & (ops.abs(ops.sum(rows, axis=-1) - 1) < 1e-2)
            & (ops.sum(ops.cast(rows == largest, "int32"), axis=-1) == 1)
        )
        check_values(
            is_right,
            f"Rows of `{name}` must be one-hot, or probabilities of which one "
            "is the largest.",
            values,
        )
        return ops.where(is_right, classes, -1)
    rows_rule = f"(batch, {num_classes})" if num_classes else "(batch, classes)"
    raise ValueError(
        f"`{name}` must be class numbers of shape (batch,) or (batch, 1), or "
        f"one-hot rows of shape {rows_rule}. Received: {name} of shape {shape}."
    )


def check_values(is_right: Tensor, rule: str, values: Tensor) -> None:
    """Checks values of a tensor, if they are known or can be checked later.

    Args:
        is_right: Bool tensor of shape `(batch,)`.
        rule: The rule that the values have to follow.
        values: The values, of shape `(batch, ...)`, for the error.

    Raises:
        ValueError: an entry is false. In a graph of TensorFlow, where values
            are not known yet, it is `tf.errors.InvalidArgumentError`.
    """
    if not backend.is_known(is_right):
        backend.assert_later(is_right, rule, values)
        return
    wrong = ~ops.convert_to_numpy(is_right)
    if wrong.any():
        example = ops.convert_to_numpy(values)[wrong][0]
        raise ValueError(
            f"{rule} Received: {wrong.sum():,} of {len(wrong):,} that are not, "
            f"such as {example}."
        )


def _as_tensor(labels: npt.ArrayLike, name: str) -> Tensor:
    """Returns labels as a tensor, if they are numbers."""
    values = labels if hasattr(labels, "dtype") else np.asarray(labels)
    # Texts are no tensors, except with TensorFlow: ask the array.
    dtype = getattr(values.dtype, "name", str(values.dtype))
    if dtype.startswith(("str", "bytes", "object")):
        raise ValueError(
            f"`{name}` must be numbers. Received: strings. Map them to class "
            "numbers, for instance by `keras.layers.StringLookup`."
        )
    return ops.convert_to_tensor(values)


def _as_widest(values: Tensor) -> Tensor:
    """Returns numbers in the widest dtype of their kind."""
    dtype = keras.backend.standardize_dtype(values.dtype)
    is_float = keras.backend.is_float_dtype(dtype)
    return ops.cast(values, WIDEST_FLOAT if is_float else WIDEST_INT)
