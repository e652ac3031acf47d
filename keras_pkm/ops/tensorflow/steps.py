"""Steps in graphs, on all replicas, and their updates of variables."""

import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_pkm.ops.tensorflow.row_gradients import Gradient


def compiled(
    step: Callable[..., list[tf.Tensor]],
    variables: Sequence[keras.Variable],
    strategy: tf.distribute.Strategy,
    inputs: Any = None,
) -> Callable[..., list[tf.Tensor]]:
    """Returns a graph of a step, whose results are summed over replicas.

    Args:
        step: A function of nested tensors that returns a list of tensors.
        variables: Not needed here.
        strategy: The strategy on whose replicas it runs.
        inputs: See `keras_pkm.ops.backend.Backend.compiled`.
    """
    signature = None
    if inputs is not None:
        signature = [
            keras.tree.map_structure(
                lambda each: tf.TensorSpec(each.shape, each.dtype), inputs
            )
        ]

    @tf.function(
        reduce_retracing=True, input_signature=signature, autograph=False
    )
    def run(*arguments: Any) -> list[tf.Tensor]:
        results = strategy.run(step, arguments)
        return strategy.reduce("sum", results, axis=None)

    return run


def gradients(
    compute: Callable[[], tf.Tensor], variables: Sequence[keras.Variable]
) -> list[Gradient | None]:
    """Returns the gradients of a scalar.

    Args:
        compute: A function that returns the scalar.
        variables: The variables; they need not be trainable.
    """
    values = [variable.value for variable in variables]
    tape = tf.GradientTape(watch_accessed_variables=False)
    with tape:
        tape.watch(values)
        scalar = compute()
    return tape.gradient(scalar, values)


def update_if(
    condition: tf.Tensor,
    update: Callable[[keras.Variable, Any, Gradient, tf.Tensor], None],
    variables: Sequence[keras.Variable],
    gradients: Sequence[Gradient],
    rate: tf.Tensor,
    state: Sequence[keras.Variable],
) -> None:
    """Updates variables on all replicas together, or none on any.

    Args:
        condition: bool scalar, the same on all replicas.
        update: A function of a variable, its component on one device, its
            gradient and the rate.
        variables: The variables.
        gradients: Their gradients.
        rate: float scalar.
        state: Not needed here.
    """

    def on_all_replicas(
        distribution: tf.distribute.Strategy,
        condition: tf.Tensor,
        gradients: Sequence[Gradient],
        rate: tf.Tensor,
    ) -> None:
        def update_all() -> None:
            for variable, gradient in zip(variables, gradients):
                distribution.extended.update(
                    variable.value,
                    functools.partial(update, variable),
                    args=(gradient, rate),
                    group=False,
                )

        condition = distribution.experimental_local_results(condition)[0]
        tf.cond(condition, update_all, lambda: None)

    tf.__internal__.distribute.interim.maybe_merge_call(
        on_all_replicas,
        tf.distribute.get_strategy(),
        condition,
        list(gradients),
        rate,
    )


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function as it is."""
    return function
