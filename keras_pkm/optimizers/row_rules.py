"""Update rules for the rows of a value table."""

from collections.abc import Callable

from keras import ops

from keras_pkm.ops.tensors import Tensor

RULES = ("adam", "sgd")

#: Takes gradients and the rows of each table; returns the tables' new rows.
RowRule = Callable[..., tuple[Tensor, ...]]


def adam_rule(
    rate: Tensor,
    steps: Tensor | None,
    beta_1: float,
    beta_2: float,
    epsilon: float,
) -> RowRule:
    """Returns Adam's rule, for rows of values, momentums and velocities.

    If the velocities have a single column, they are the moving means of each
    row's mean square.

    Args:
        rate: The learning rate.
        steps: How many steps were taken, this one among them. `None` if each
            row has its own count, as a fourth table with a single column.
        beta_1: Decay of momentums.
        beta_2: Decay of velocities.
        epsilon: Added to the root of velocities.
    """

    def update(
        gradient: Tensor, values: Tensor, m: Tensor, v: Tensor, *counts: Tensor
    ) -> tuple[Tensor, ...]:
        square = ops.square(gradient)
        if v.shape[-1] == 1:
            square = ops.mean(square, axis=-1, keepdims=True)
        m += (gradient - m) * (1 - beta_1)
        v += (square - v) * (1 - beta_2)
        counts = tuple(count + 1 for count in counts)
        t = counts[0] if counts else steps
        root = ops.sqrt(1 - ops.power(beta_2, t))
        alpha = rate * root / (1 - ops.power(beta_1, t))
        return values - alpha * m / (ops.sqrt(v) + epsilon), m, v, *counts

    return update


def sgd_rule(rate: Tensor) -> RowRule:
    """Returns the rule of plain gradient descent, for rows of values alone.

    Args:
        rate: The learning rate.
    """

    def update(gradient: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        return (values - rate * gradient,)

    return update
