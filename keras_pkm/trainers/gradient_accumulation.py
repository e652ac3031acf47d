"""A train step that adds up the gradients of parts of a batch."""

from typing import Any
from typing import TypeAlias

import keras
import tensorflow as tf

_Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices | None


def accumulated_train_step(
    model: keras.Model, data: Any, num_parts: int
) -> dict[str, tf.Tensor]:
    """Takes one step of the optimizer on the mean gradient of equal parts.

    Losses are means over examples, so that the step equals that of the whole
    batch, but needs the memory of one part only. Two layers depend on the
    parts: batch norm normalizes each part by its own statistics, and dropout
    draws a mask for each part.

    Keras' own accumulation adds up gradients in the optimizer, and fails under
    `tf.distribute`.

    Args:
        model: compiled `keras.Model`, in its `train_step`.
        data: `x`, `(x, y)` or `(x, y, sample_weight)`: nested tensors with the
            same leading dimension, a multiple of `num_parts`.
        num_parts: int. The number of parts.

    Returns:
        The logs of `model.compute_metrics`, over all parts.
    """
    variables = model.trainable_variables
    total: list[_Gradient] = [None] * len(variables)
    logs: dict[str, tf.Tensor] = {}
    for part in _split(data, num_parts):
        # The graph must not run the parts in parallel.
        before = [
            _values(gradient) for gradient in total if gradient is not None
        ]
        with tf.control_dependencies(before):
            part = keras.tree.map_structure(tf.identity, part)
            gradients, logs = _gradients(model, part, variables)
            total = [_add(*pair) for pair in zip(total, gradients)]
    mean = [_scale(gradient, 1 / num_parts) for gradient in total]
    model.optimizer.apply_gradients(zip(mean, variables))
    return logs


def _gradients(
    model: keras.Model, data: Any, variables: list[keras.Variable]
) -> tuple[list[_Gradient], dict[str, tf.Tensor]]:
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    with tf.GradientTape() as tape:
        y_pred = model(x, training=True)
        loss = model.compute_loss(
            x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True
        )
        scaled = model.optimizer.scale_loss(loss)
    # Under a strategy the loss is a replica's share of the mean.
    replicas = model.distribute_strategy.num_replicas_in_sync
    size = tf.shape(keras.tree.flatten(x)[0])[0]
    model._loss_tracker.update_state(loss * replicas, sample_weight=size)
    logs = model.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
    return tape.gradient(scaled, variables), logs


def _split(data: Any, num_parts: int) -> list[Any]:
    """Splits nested tensors into parts with the same nesting."""
    flat = [tf.split(tensor, num_parts) for tensor in keras.tree.flatten(data)]
    return [
        keras.tree.pack_sequence_as(data, list(tensors))
        for tensors in zip(*flat)
    ]


def _values(gradient: tf.Tensor | tf.IndexedSlices) -> tf.Tensor:
    if isinstance(gradient, tf.IndexedSlices):
        return gradient.values
    return gradient


def _add(total: _Gradient, gradient: _Gradient) -> _Gradient:
    """The sum of two gradients; slices are concatenated."""
    if total is None or gradient is None:
        return gradient if total is None else total
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(
            tf.concat([total.values, gradient.values], 0),
            tf.concat([total.indices, gradient.indices], 0),
            gradient.dense_shape,
        )
    return total + gradient


def _scale(gradient: _Gradient, factor: float) -> _Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(
            gradient.values * factor, gradient.indices, gradient.dense_shape
        )
    return None if gradient is None else gradient * factor
