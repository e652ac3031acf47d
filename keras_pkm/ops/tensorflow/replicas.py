"""Variables and sums of the replicas of `tf.distribute`."""

from typing import Any

import keras
import tensorflow as tf


def components(
    variable: keras.Variable | tf.Variable,
) -> tuple[tf.Variable, ...]:
    """Returns the plain variables behind `variable`, one for each replica.

    A variable that no strategy has distributed is its own only component. Of
    several workers, each gets the components in its own process.
    """
    if isinstance(variable, keras.Variable):
        variable = variable.value
    if isinstance(variable, tf.distribute.DistributedValues):
        return tuple(variable.values)
    return (variable,)


def strategy_of(model: keras.Model) -> tf.distribute.Strategy:
    """Returns the strategy in whose scope a model was made.

    What is made to work on the model's variables, such as an optimizer, has to
    be made in the same scope.

    Raises:
        ValueError: the scope of another strategy is open, or only some of the
            model's weights were made in that of its own.
    """
    # In a `keras.StatelessScope` the values are tensors.
    weights = [
        variable.value
        for variable in model.weights
        if isinstance(
            variable.value, tf.Variable | tf.distribute.DistributedValues
        )
    ]
    strategies = [
        value.distribute_strategy
        for value in weights
        if isinstance(value, tf.distribute.DistributedValues)
    ]
    strategy = strategies[0] if strategies else model.distribute_strategy
    current = tf.distribute.get_strategy()
    made_there = [
        strategy.extended.variable_created_in_scope(value) for value in weights
    ]
    is_elsewhere = tf.distribute.has_strategy() and current is not strategy
    if is_elsewhere or not all(made_there):
        raise ValueError(
            "`model` must be made in the scope of one `tf.distribute` "
            "strategy, or of none, and used there or outside of all scopes. "
            f"Received: a `{type(model).__name__}` with {sum(made_there)} of "
            f"{len(weights)} weights made in the scope of a "
            f"`{type(strategy).__name__}`, and used in that of a "
            f"`{type(current).__name__}`. Make the whole model in the scope "
            "where you use it."
        )
    return strategy


def local_component(
    variable: keras.Variable | tf.Variable | tf.Tensor,
) -> tf.Variable | tf.Tensor:
    """Returns the plain `tf.Variable` behind `variable` on this replica.

    Gathering from the distributed variable itself would copy all of it.
    """
    if isinstance(variable, keras.Variable):
        variable = variable.value
    if not isinstance(variable, tf.distribute.DistributedValues):
        return variable
    if tf.distribute.in_cross_replica_context():
        # Symbolic builds and direct calls in a scope: any component will do.
        return components(variable)[0]
    return variable._get()


def num_replicas() -> int:
    """The number of replicas that run this step together."""
    context = tf.distribute.get_replica_context()
    return 1 if context is None else context.num_replicas_in_sync


def sum_over_replicas(tensors: Any) -> Any:
    """The tensors summed over all replicas; slices are concatenated.

    Args:
        tensors: a tensor, slices, or a list of them.
    """
    if num_replicas() == 1:
        return tensors
    context = tf.distribute.get_replica_context()
    return context.all_reduce(tf.distribute.ReduceOp.SUM, tensors)
