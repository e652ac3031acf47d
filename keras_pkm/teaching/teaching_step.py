"""Training steps of a model in inference mode."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_pkm.ops.implementation import fastest_by_default


def make_teaching_step(
    model: keras.Model,
    variables: Sequence[keras.Variable],
    optimizer: keras.optimizers.Optimizer,
    loss: keras.losses.Loss | None,
) -> Callable[[Any, Any, Any], tf.Tensor]:
    """Returns a function that takes one step.

    The model runs as in inference: without dropout, and with the moving
    statistics of batch norms. Its compiled optimizer and loss, and which of its
    variables are trainable, remain unchanged.

    Args:
        model: Any built Keras model.
        variables: The variables to train.
        optimizer: A new optimizer.
        loss: A loss, or `None` for the one that the model is compiled with.

    Returns:
        A function of features, labels and sample weights (or `None`), which
        returns the loss.
    """
    if loss is None and not model.compiled:
        raise ValueError(
            "`loss` must be given for a model that is not compiled. Received: "
            "None."
        )
    if model.distribute_strategy.num_replicas_in_sync > 1:
        raise ValueError(
            "`model` must be on one device. Received: one on "
            f"{model.distribute_strategy.num_replicas_in_sync}, built under a "
            "`tf.distribute` strategy. Load it outside of the strategy's scope."
        )
    optimizer.build(variables)

    @tf.function(reduce_retracing=True)
    def step(x: Any, y: Any, sample_weight: Any) -> tf.Tensor:
        weights = [variable.value for variable in variables]
        tape = tf.GradientTape(watch_accessed_variables=False)
        with fastest_by_default(), tape:
            tape.watch(weights)
            predicted = model(x, training=False)
            if loss is None:
                value = model.compute_loss(
                    x, y, predicted, sample_weight, training=False
                )
            else:
                value = loss(y, predicted, sample_weight)
            scaled = optimizer.scale_loss(value)
        optimizer.apply(tape.gradient(scaled, weights), variables)
        return value

    return step


def take_steps(
    step: Callable[[Any, Any, Any], object],
    batches: Iterable[Any],
    steps: int,
    until: Callable[[], bool] | None = None,
) -> int:
    """Takes a step on each batch, repeating the batches.

    Args:
        step: A function of features, labels and sample weights (or `None`).
        batches: Tuples `(x, y)` or `(x, y, sample_weight)`.
        steps: The maximum number of steps.
        until: Called before each step; a true result ends the steps.

    Returns:
        The number of steps that were taken.

    Raises:
        ValueError: a batch is no such tuple.
    """
    done = 0
    for batch in _over_and_over(batches):
        if done == steps or (until is not None and until()):
            break
        _check(batch)
        step(*keras.utils.unpack_x_y_sample_weight(batch))
        done += 1
    return done


def _check(batch: Any) -> None:
    if isinstance(batch, tuple | list) and len(batch) in (2, 3):
        return
    received = f"a batch of the type `{type(batch).__name__}`"
    if isinstance(batch, tuple | list):
        received += f" and length {len(batch)}"
    raise ValueError(
        "`batches` must consist of tuples `(x, y)` or `(x, y, sample_weight)`. "
        f"Received: {received}. Pass a single batch as `[(x, y)]`."
    )


def _over_and_over(batches: Iterable[Any]) -> Iterator[Any]:
    """Yields the batches repeatedly, or nothing if there are none."""
    is_empty = False
    while not is_empty:
        is_empty = True
        for batch in batches:
            is_empty = False
            yield batch
