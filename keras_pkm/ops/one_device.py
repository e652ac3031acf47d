"""What stands for a strategy of `tf.distribute` where there is none.

On JAX, arrays that `keras.distribution` has divided among devices are summed as
if they were whole. On torch, models run on one device.
"""

import contextlib
from typing import Any

import keras


class OneDevice:
    """A model that no strategy has distributed.

    It has the part of `tf.distribute.Strategy` that every backend needs.
    """

    num_replicas_in_sync = 1

    def scope(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context without any effect."""
        return contextlib.nullcontext()


def strategy_of(model: keras.Model) -> OneDevice:
    """Returns the strategy of any model."""
    return OneDevice()


def components(variable: keras.Variable) -> tuple[Any, ...]:
    """Returns the only component of a variable, the variable itself."""
    return (variable,)


def sum_over_replicas(tensors: Any) -> Any:
    """Returns tensors as they are."""
    return tensors
