"""A train step that adds up the gradients of parts of a batch."""

from typing import Any
from typing import TypeAlias

import keras
import tensorflow as tf

from keras_pkm.layers.masked_batch_normalization import part_of_a_batch
from keras_pkm.ops.tensors import keras_mask

_Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices | None


def accumulated_train_step(
    model: keras.Model, data: Any, num_parts: int
) -> dict[str, tf.Tensor]:
    """Takes one step of the optimizer on the gradient of parts of a batch.

    The step equals that of the whole batch, but needs the memory of one part
    only. The parts differ by one example at most; some are empty if there are
    more parts than examples. Two layers depend on the parts: batch norm
    normalizes each part by its own statistics, and all parts together move
    the moving statistics as far as one batch does, unless some are empty;
    dropout draws a mask for each part. What layers add to the loss is averaged
    over the parts.

    Keras' own accumulation adds up gradients in the optimizer, and fails under
    `tf.distribute`.

    Args:
        model: compiled `keras.Model`, in its `train_step`.
        data: `x`, `(x, y)` or `(x, y, sample_weight)`: nested tensors with the
            same leading dimension. Any of them may be `None`.
        num_parts: int. The number of parts.

    Returns:
        The logs of `model.compute_metrics`, over all parts.

    Raises:
        ValueError: the loss is no mean over examples, so that parts do not
            add up to it.
    """
    variables = model.trainable_variables
    total: list[_Gradient] = [None] * len(variables)
    logs: dict[str, tf.Tensor] = {}
    parts, size = _split(data, num_parts)
    for part, share in zip(parts, _shares(model, parts)):
        # The graph must not run the parts in parallel.
        before = [
            _values(gradient) for gradient in total if gradient is not None
        ]
        with tf.control_dependencies(before):
            part = keras.tree.map_structure(_identity, part)
            with part_of_a_batch(num_parts):
                gradients, logs = _gradients(
                    model, part, share, size, variables
                )
            total = [_add(*pair) for pair in zip(total, gradients)]
    model.optimizer.apply_gradients(zip(total, variables))
    return logs


def _gradients(
    model: keras.Model,
    data: Any,
    share: tf.Tensor,
    size: tf.Tensor,
    variables: list[keras.Variable],
) -> tuple[list[_Gradient], dict[str, tf.Tensor]]:
    """Returns what a part adds to the gradient of the batch, and the logs.

    Args:
        model: The model.
        data: The part.
        share: The part's share in the loss of the batch.
        size: The number of examples of the batch.
        variables: The variables to train.
    """
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    with tf.GradientTape() as tape:
        y_pred = model(x, training=True)
        _check_no_mask(y_pred)
        if _first(x).shape[0] == 0:
            # Keras has no loss of nothing. All replicas must sum up alike, so
            # that this part cannot be left out.
            loss = tf.add_n(
                [tf.reduce_sum(leaf) for leaf in keras.tree.flatten(y_pred)]
            )
        else:
            loss = model.compute_loss(
                x=x,
                y=y,
                y_pred=y_pred,
                sample_weight=sample_weight,
                training=True,
            )
        # A loss of its own may be NaN if the graph learns only now that the
        # part is empty.
        loss = tf.where(tf.shape(_first(x))[0] > 0, loss, 0)
        scaled = model.optimizer.scale_loss(loss * tf.cast(share, loss.dtype))
    # Under a strategy the loss is a replica's share of the mean.
    replicas = model.distribute_strategy.num_replicas_in_sync
    model._loss_tracker.update_state(
        loss * replicas, sample_weight=share * size
    )
    logs = model.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
    return tape.gradient(scaled, variables), logs


def _first(data: Any) -> tf.Tensor:
    """The first of nested tensors."""
    return next(leaf for leaf in keras.tree.flatten(data) if leaf is not None)


def _split(data: Any, num_parts: int) -> tuple[list[Any], tf.Tensor]:
    """Splits nested tensors into parts with the same nesting.

    Returns:
        The parts, and the number of examples, a float32 scalar.
    """
    flat = [
        None if leaf is None else tf.convert_to_tensor(leaf)
        for leaf in keras.tree.flatten(data)
    ]
    first = _first(flat)
    size = tf.shape(first)[0] if first.shape[0] is None else first.shape[0]
    # If the graph knows the size, it knows those of the parts.
    sizes = [(size + part) // num_parts for part in range(num_parts)]
    splits = [
        [None] * num_parts if tensor is None else tf.split(tensor, sizes)
        for tensor in flat
    ]
    parts = [
        keras.tree.pack_sequence_as(data, list(tensors))
        for tensors in zip(*splits)
    ]
    return parts, tf.cast(size, "float32")


def _shares(model: keras.Model, parts: list[Any]) -> list[tf.Tensor]:
    """Returns the share of each part in the loss of the batch, a float32.

    Args:
        model: The model.
        parts: The parts of the batch.
    """
    for layer in model._flatten_layers():
        if getattr(layer, "activity_regularizer", None) is not None:
            raise ValueError(
                "`accumulation_steps` must be 1 if a layer has an "
                "`activity_regularizer`, which is a sum over the batch. "
                f"Received: accumulation_steps={len(parts)}, and the layer "
                f"'{layer.name}'."
            )
    losses = [
        loss for loss in keras.tree.flatten(model.loss) if loss is not None
    ]
    for loss in losses:
        if getattr(loss, "ignore_class", None) is not None:
            raise _depends_on_tokens(f"ignore_class={loss.ignore_class}")
    reductions = {getattr(loss, "reduction", "mean") for loss in losses}
    sizes, weights = [], []
    for part in parts:
        x, _, sample_weight = keras.utils.unpack_x_y_sample_weight(part)
        sizes.append(tf.cast(tf.shape(_first(x))[0], "float32"))
        weights += [
            tf.reduce_sum(tf.cast(leaf, "float32"))
            for leaf in keras.tree.flatten(sample_weight)
            if leaf is not None
        ]
    # A replica may have no example at all.
    by_size = [tf.math.divide_no_nan(size, tf.add_n(sizes)) for size in sizes]
    if reductions <= {"mean", "sum_over_batch_size"}:
        return by_size
    if reductions == {"mean_with_sample_weight"} and not weights:
        return by_size
    if (
        reductions == {"mean_with_sample_weight"}
        and len(losses) == 1
        and len(weights) == len(parts)
    ):
        all_weights = tf.add_n(weights)
        return [
            tf.where(all_weights > 0, weight / all_weights, share)
            for weight, share in zip(weights, by_size)
        ]
    raise ValueError(
        "`accumulation_steps` must be 1 if the loss is no mean over examples, "
        "or consists of several means by different weights. Received: "
        f"accumulation_steps={len(parts)} and losses with "
        f"reduction={', '.join(map(repr, sorted(map(str, reductions))))}. Use "
        'losses with reduction="sum_over_batch_size".'
    )


def _check_no_mask(y_pred: Any) -> None:
    """Checks that the loss will be a mean over all entries."""
    for leaf in keras.tree.flatten(y_pred):
        if keras_mask(leaf) is not None:
            raise _depends_on_tokens("outputs with a Keras mask")


def _depends_on_tokens(received: str) -> ValueError:
    return ValueError(
        "`accumulation_steps` must be 1 if the loss is a mean over a number of "
        "tokens that differs between the parts of a batch. Received: "
        f"{received}. Use sample weights, and a loss with "
        'reduction="mean_with_sample_weight".'
    )


def _identity(leaf: tf.Tensor | None) -> tf.Tensor | None:
    return None if leaf is None else tf.identity(leaf)


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
