"""What every layer, model and optimizer of a kind must do."""

import json

import keras
import numpy as np


def to_numpy(tensor):
    """A tensor or variable of any backend as an array."""
    return keras.ops.convert_to_numpy(tensor)


def fresh_rng():
    """Other numbers in each run; pytest shows the seed of a failure."""
    seed = np.random.SeedSequence().entropy
    print(f"np.random.default_rng({seed})")
    return np.random.default_rng(seed)


def fixed_rng():
    """The same numbers in each run, for tests that compare up to rounding.

    If the scores of two slots differ by no more than that, either of them may
    be the last of the top k. About two in ten thousand tiny batches have such
    slots.
    """
    return np.random.default_rng(0)


def check_config_round_trip(thing):
    """`from_config(get_config())` gives the same, through JSON, too."""
    config = json.dumps(thing.get_config())
    copy = type(thing).from_config(json.loads(config))
    assert json.dumps(copy.get_config()) == config
    return copy


def check_layer(layer, inputs, tmp_path):
    """Config, declared output shape and dtype, and a `.keras` round trip."""
    outputs = layer(inputs)
    check_config_round_trip(layer)
    assert tuple(layer.compute_output_shape(inputs.shape)) == outputs.shape
    spec = layer.compute_output_spec(keras.KerasTensor(inputs.shape))
    assert (tuple(spec.shape), spec.dtype) == (
        tuple(outputs.shape),
        keras.backend.standardize_dtype(outputs.dtype),
    )

    symbolic = keras.Input((None, *inputs.shape[2:]))
    model = keras.Model(symbolic, layer(symbolic))
    path = tmp_path / "model.keras"
    model.save(path)
    copy = keras.models.load_model(path)
    np.testing.assert_array_equal(copy(inputs), model(inputs))

    weights = tmp_path / "model.weights.h5"
    model.save_weights(weights)
    for weight in copy.weights:
        weight.assign(keras.ops.zeros_like(weight))
    copy.load_weights(weights)
    for old, new in zip(model.weights, copy.weights):
        np.testing.assert_array_equal(old, new)


def assert_close(actual, expected, tolerance=1e-5):
    """max|a − b| ≤ tolerance · max|b|."""
    actual = np.asarray(actual, "float64")
    expected = np.asarray(expected, "float64")
    assert actual.shape == expected.shape
    error = np.abs(actual - expected).max(initial=0)
    scale = np.abs(expected).max(initial=0)
    assert error <= tolerance * scale, f"error {error:.2e}, scale {scale:.2e}"
