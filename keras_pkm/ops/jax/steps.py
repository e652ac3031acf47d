"""Compiled steps that change variables, and gradients in them."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import jax
import keras


def compiled(
    step: Callable[..., list[jax.Array]],
    variables: Sequence[keras.Variable],
    strategy: Any,
    inputs: Any = None,
) -> Callable[..., list[jax.Array]]:
    """Returns a compiled function that works on variables as they are.

    Args:
        step: A function of nested tensors that returns a list of tensors.
        variables: All variables that it reads or changes.
        strategy: Not needed here.
        inputs: Not needed here.
    """

    @jax.jit
    def run(values: list[jax.Array], *arguments: Any) -> tuple[Any, Any]:
        mapping = list(zip(variables, values))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            before = [scope.get_current_value(each) for each in variables]
            results = step(*arguments)
        after = [scope.get_current_value(each) for each in variables]
        changed = {
            number: new
            for number, (old, new) in enumerate(zip(before, after))
            if new is not old
        }
        return results, changed

    def run_on_variables(*arguments: Any) -> list[jax.Array]:
        values = [variable.value for variable in variables]
        results, changed = run(values, *arguments)
        for number, value in changed.items():
            variables[number].assign(value)
        return results

    return run_on_variables


def gradients(
    compute: Callable[[], jax.Array], variables: Sequence[keras.Variable]
) -> list[jax.Array | None]:
    """Returns the gradients of a scalar, inside of a `compiled` step.

    Args:
        compute: A function that returns the scalar. It changes no variable.
        variables: The variables; they need not be trainable.
    """
    before = [variable.value for variable in variables]

    def scalar(values: list[jax.Array]) -> jax.Array:
        _assign(variables, values)
        return compute()

    found = jax.grad(scalar)(before)
    # Tracers of the gradient must not stay in variables.
    _assign(variables, before)
    return list(found)


def _assign(
    variables: Sequence[keras.Variable], values: Sequence[jax.Array]
) -> None:
    for variable, value in zip(variables, values):
        variable.assign(value)
