"""Training steps of a model in inference mode."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_pkm.ops.implementation import fastest_by_default
from keras_pkm.ops.replicas import strategy_of


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
        optimizer: A new optimizer, made in the scope of the model's strategy.
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
    strategy = strategy_of_one_device(model)
    with strategy.scope():
        optimizer.build(variables)

    def take_step(x: Any, y: Any, sample_weight: Any) -> tf.Tensor:
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

    @tf.function(reduce_retracing=True)
    def step(x: Any, y: Any, sample_weight: Any) -> tf.Tensor:
        return strategy.run(take_step, (x, y, sample_weight))

    return step


def strategy_of_one_device(model: keras.Model) -> tf.distribute.Strategy:
    """Returns the strategy of a model, which must keep it on one device.

    The optimizer has to be made in its scope.

    Raises:
        ValueError: the model is on several devices, or is used in the scope of
            a strategy in which it was not made.
    """
    strategy = strategy_of(model)
    if strategy.num_replicas_in_sync > 1:
        raise ValueError(
            "`model` must be on one device. Received: one on "
            f"{strategy.num_replicas_in_sync}, built under a `tf.distribute` "
            "strategy. Load it outside of the strategy's scope."
        )
    return strategy


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
