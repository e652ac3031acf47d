"""Functions of tensors with their gradients, eager and compiled."""

import warnings

import keras
import numpy as np
from keras import ops

from keras_pkm.ops.backend import backend
from tests.contracts import to_numpy

#: How a function is run.
MODES = ("eager", "compiled")


def strategy():
    return backend.strategy_of(keras.Sequential([keras.layers.Dense(1)]))


def run(function, variables, mode, *arrays, compiler="aot_eager"):
    """The results of a function, which returns a list of tensors.

    torch's default compiler, "inductor", builds C++ for each function, which
    takes half a minute; "aot_eager" traces the same and runs torch's kernels.
    """
    tensors = list(map(ops.convert_to_tensor, arrays))
    if mode == "eager":
        return list(map(to_numpy, function(*tensors)))
    if keras.backend.backend() == "torch":
        import torch

        # Where the compiler leaves something out, it warns about itself.
        with warnings.catch_warnings(action="ignore"):
            compiled = torch.compile(function, dynamic=False, backend=compiler)
            return list(map(to_numpy, compiled(*tensors)))
    compiled = backend.compiled(function, variables, strategy())
    return list(map(to_numpy, compiled(*tensors)))


def outputs_and_gradients(compute, variables, upstream, mode, *arrays):
    """The outputs of a function and the gradients of variables.

    Args:
        compute: A function of tensors that returns a tensor.
        variables: The variables.
        upstream: The gradient of the outputs, an array.
        mode: One of `MODES`.
        *arrays: What the function takes.

    Returns:
        Arrays: the outputs, and a list of gradients, dense.
    """

    def step(*tensors):
        found = []

        def loss():
            outputs = compute(*tensors)
            found.append(outputs)
            return ops.sum(outputs * ops.convert_to_tensor(upstream))

        gradients = backend.gradients(loss, variables)
        return [*map(dense, gradients)]

    (outputs,) = run(
        lambda *tensors: [compute(*tensors)], variables, mode, *arrays
    )
    # torch's compiler cannot trace a step that takes gradients itself.
    gradient_mode = "eager" if keras.backend.backend() == "torch" else mode
    return outputs, run(step, variables, gradient_mode, *arrays)


def dense(gradient):
    """A gradient as a tensor of the variable's shape."""
    if hasattr(gradient, "dense_shape"):  # of TensorFlow
        import tensorflow as tf

        return tf.convert_to_tensor(gradient)
    if getattr(gradient, "is_sparse", False):  # of torch
        return gradient.to_dense()
    return gradient


def assert_close(actual, expected, tolerance=1e-5):
    """Up to the tolerance, relative to the largest expected number."""
    scale = max(np.abs(expected).max(initial=0), 1e-6)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def assert_slopes(loss, exact, gradients, rng):
    """Checks gradients by differences of a loss, in random directions.

    Args:
        loss: A function of all weights, float64 arrays by name.
        exact: The weights.
        gradients: The gradients of some of them, by name.
        rng: A generator of random numbers.
    """
    for name, gradient in gradients.items():
        scale = max(np.linalg.norm(gradient), 0.1)
        for _ in range(4):
            direction = rng.normal(size=gradient.shape)
            direction /= np.linalg.norm(direction)
            there, back = (
                loss({**exact, name: exact[name] + step * direction})
                for step in (1e-6, -1e-6)
            )
            slope = (there - back) / 2e-6
            assert abs((gradient * direction).sum() - slope) <= 1e-5 * scale
