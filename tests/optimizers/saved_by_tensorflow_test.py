"""TensorFlow itself saves a model that `PKMAdam` has trained."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.layers import ProductKeyMemory
from keras_pkm.optimizers import PKMAdam
from tests.contracts import fresh_rng

X = fresh_rng().normal(size=(8, 6)).astype("float32")


def trained(**options):
    keras.utils.set_random_seed(0)
    memory = ProductKeyMemory(4, top_k=2, key_dim=4)
    model = keras.Sequential([keras.Input((6,)), memory])
    model.compile(PKMAdam(0.1, 0.1, **options), "mse")
    if options.get("only_chosen_slots"):
        model.optimizer.build(model.trainable_variables)
        model.optimizer.choose_slots(memory.table.values, [1, 2])
    model.fit(X, X, verbose=0)
    return model


@pytest.mark.parametrize("save", [keras.Model.export, tf.saved_model.save])
def test_a_saved_model(save, tmp_path):
    model = trained()
    save(model, str(tmp_path))
    again = tf.saved_model.load(str(tmp_path))
    found = again.signatures["serving_default"](tf.constant(X))
    (found,) = found.values()
    np.testing.assert_allclose(found, model.predict(X, verbose=0), rtol=1e-6)


def test_a_checkpoint(tmp_path):
    options = {"bias_correction": "row", "only_chosen_slots": True}
    model, other = trained(**options), trained(**options)
    model.fit(X, X, verbose=0)
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "saved"))
    tf.train.Checkpoint(model=other).restore(path).assert_consumed()
    variables = model.variables, model.optimizer.variables
    others = other.variables, other.optimizer.variables
    for part, of_other in zip(variables, others, strict=True):
        for a, b in zip(part, of_other, strict=True):
            np.testing.assert_array_equal(a, b)
