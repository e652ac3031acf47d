"""Logistic regression, by Newton's method."""

import numpy as np

_STEPS = 8


def fit_logistic_regression(
    x: np.ndarray, is_positive: np.ndarray, l2: float
) -> np.ndarray:
    """Returns weights and a bias that tell two classes apart.

    Both classes count the same in sum, whatever their numbers.

    Args:
        x: float array of shape `(examples, dim)`.
        is_positive: bool array of shape `(examples,)`, with both classes.
        l2: The penalty on half the squares of the weights, beside a loss that
            is summed over the examples.

    Returns:
        float64 array of shape `(dim + 1,)`; the bias is the last entry. The
        log-odds of the positive class are `x @ weights + bias`.
    """
    ones = np.ones((len(x), 1))
    inputs = np.concatenate([x, ones], axis=1, dtype="float64")
    share = np.where(is_positive, is_positive.mean(), 1 - is_positive.mean())
    importance = 0.5 / share
    penalty = np.append(np.full(x.shape[1], l2), 0.0)
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        odds = np.clip(inputs @ weights, -30, 30)
        probability = 1 / (1 + np.exp(-odds))
        slope = inputs.T @ (importance * (probability - is_positive))
        curve = importance * probability * (1 - probability)
        hessian = (inputs * curve[:, None]).T @ inputs
        # Where all examples are far from the border, there is no curve.
        hessian += np.diag(penalty + 1e-6)
        weights -= np.linalg.solve(hessian, slope + penalty * weights)
    return weights
