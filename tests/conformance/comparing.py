"""What is compared, and how closely."""

import inspect

import keras
import numpy as np
import tensorflow as tf

from tests.contracts import check_config_round_trip

# A softmax, or a batch norm, takes out what is added to all alike. (The last
# two are those of question answerers.)
NO_GRADIENT = (
    "key/bias",
    "query_projection/bias",
    "span_dense/bias",
    "feedforward_layer_norm/beta",
)


def same_outputs(actual, expected, tolerance=1e-5):
    """Compares nested outputs: structure, dtypes, numbers."""
    keras.tree.assert_same_structure(actual, expected)
    for one, other in zip(
        keras.tree.flatten(actual), keras.tree.flatten(expected)
    ):
        assert one.dtype == other.dtype
        one, other = (np.asarray(tf.cast(x, "float64")) for x in (one, other))
        assert np.isfinite(other).all() and np.ptp(other) > 1e-3
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


def check_config(thing):
    """The round trip of a configuration, which has every argument.

    One that is missing would come back as its default.
    """
    arguments = inspect.signature(type(thing).__init__).parameters.values()
    config = thing.get_config()
    for argument in arguments:
        if argument.name not in ("self", "dtype") and (
            argument.kind is argument.POSITIONAL_OR_KEYWORD
            or argument.kind is argument.KEYWORD_ONLY
        ):
            assert argument.name in config
    return check_config_round_trip(thing)


def right_or_refused(compiled, eager):
    """Runs something under XLA: the same numbers, or an error that says so."""
    try:
        actual = compiled()
    except (TypeError, ValueError, NotImplementedError, RuntimeError) as error:
        assert "jit_compile" in str(error)
        return
    expected = eager()
    scale = max(np.abs(array).max() for array in expected)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * scale)


def components(variable):
    """The values of a variable, one for each replica that holds it."""
    value = variable.value
    if isinstance(value, tf.distribute.DistributedValues):
        return [component.numpy() for component in value.values]
    return [value.numpy()]


def check_learned(training):
    """All weights that are trained moved, and the loss fell."""
    first, second = training.losses
    assert np.isfinite(second) and second < first
    trained_ids = {
        id(weight)
        for weight in training.model.trainable_weights
        if not weight.path.endswith(NO_GRADIENT)
    }
    for weight, old, new in zip(
        training.model.weights, training.start, training.end
    ):
        if id(weight) in trained_ids:
            assert not np.array_equal(old, new), weight.path
        assert np.isfinite(new).all(), weight.path


def check_same_end(actual, expected, tolerance):
    """max|a − b| of a weight is small beside what the training moved it."""
    for weight, start, one, other in zip(
        expected.model.weights,
        expected.start,
        actual.end,
        expected.end,
        strict=True,
    ):
        rounding = 1e-6
        atol = tolerance * np.abs(other - start).max() + rounding
        np.testing.assert_allclose(
            one, other, rtol=0, atol=atol, err_msg=weight.path
        )
