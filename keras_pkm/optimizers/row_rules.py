"""Update rules for the rows of a value table."""

from collections.abc import Callable

from keras import ops

from keras_pkm.ops.tensors import Tensor

RULES = ("adam", "sgd")

#: Takes gradients and the rows of each table; returns the tables' new rows.
RowRule = Callable[..., tuple[Tensor, ...]]


def adam_rule(
    alpha: Tensor, beta_1: float, beta_2: float, epsilon: float
) -> RowRule:
    """Returns Adam's rule, for rows of values, momentums and velocities.

    Args:
        alpha: The learning rate with Adam's bias correction.
        beta_1: Decay of momentums.
        beta_2: Decay of velocities.
        epsilon: Added to the root of velocities.
    """

    def update(
        gradient: Tensor, values: Tensor, m: Tensor, v: Tensor
    ) -> tuple[Tensor, ...]:
        m += (gradient - m) * (1 - beta_1)
        v += (ops.square(gradient) - v) * (1 - beta_2)
        return values - alpha * m / (ops.sqrt(v) + epsilon), m, v

    return update


def sgd_rule(rate: Tensor) -> RowRule:
    """Returns the rule of plain gradient descent, for rows of values alone.

    Args:
        rate: The learning rate.
    """

    def update(gradient: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        return (values - rate * gradient,)

    return update
