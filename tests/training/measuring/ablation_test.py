import keras
import numpy as np
import pytest

from keras_pkm.layers import ProductKeyMemory
from training.measuring.ablation import ablated_memory
from training.measuring.ablation import int8_memory
from training.runs.user_error import UserError


@pytest.fixture
def model():
    inputs = keras.Input((8,))
    layer = ProductKeyMemory(num_sub_keys=4, top_k=4, key_dim=8, num_heads=1)
    return keras.Model(inputs, layer(inputs))


def table_of(model):
    return model.layers[-1].table.values.numpy()


def test_contents_are_away_and_come_back(model):
    x = np.random.default_rng(0).normal(size=(5, 8)).astype("float32")
    trained, outputs = table_of(model), model.predict_on_batch(x)
    assert np.abs(outputs).max() > 0
    with pytest.raises(KeyError), ablated_memory(model, "zero"):
        assert not table_of(model).any()
        assert not model.predict_on_batch(x).any()
        raise KeyError
    np.testing.assert_array_equal(table_of(model), trained)
    with ablated_memory(model, "shuffle"):
        shuffled = table_of(model)
        assert (shuffled != trained).any(axis=1).mean() > 0.5
        np.testing.assert_array_equal(
            np.sort(shuffled, axis=0), np.sort(trained, axis=0)
        )
        first = sorted(map(tuple, shuffled))
        assert first == sorted(map(tuple, trained))
    np.testing.assert_array_equal(model.predict_on_batch(x), outputs)


def test_values_are_rounded_and_come_back(model):
    trained = table_of(model)
    with int8_memory(model):
        rounded = table_of(model)
    np.testing.assert_array_equal(table_of(model), trained)
    scales = np.abs(trained).max(axis=1, keepdims=True) / 127
    assert (rounded != trained).any()
    assert (np.abs(rounded - trained) <= 0.501 * scales).all()
    steps = rounded / scales
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-3)


def test_a_model_without_memory():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    with pytest.raises(UserError, match="needs a model with a memory"):
        with ablated_memory(model, "zero"):
            pass
