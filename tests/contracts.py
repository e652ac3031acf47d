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


def assert_close(actual, expected, tolerance=1e-5):
    """max|a − b| ≤ tolerance · max|b|."""
    actual = np.asarray(actual, "float64")
    expected = np.asarray(expected, "float64")
    assert actual.shape == expected.shape
    error = np.abs(actual - expected).max(initial=0)
    scale = np.abs(expected).max(initial=0)
    assert error <= tolerance * scale, f"error {error:.2e}, scale {scale:.2e}"
