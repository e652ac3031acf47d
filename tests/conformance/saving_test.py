"""Configurations, `.keras` files and clones."""

import json

import keras
import numpy as np
import pytest

from keras_pkm.models import QuestionAnswerer
from keras_pkm.optimizers import PKMAdam
from tests.conformance.comparing import check_config
from tests.conformance.comparing import same_outputs
from tests.conformance.descriptors import EVERYTHING
from tests.conformance.descriptors import LAYERS
from tests.conformance.descriptors import MODELS
from tests.conformance.descriptors import TASKS
from tests.conformance.descriptors import built
from tests.conformance.descriptors import inputs_of
from tests.conformance.descriptors import make_layer
from tests.conformance.known_defects import cases


@pytest.mark.parametrize("name", [*LAYERS, *MODELS])
def test_config(name):
    """Also as Keras writes it, with the name of the class."""
    thing = make_layer(name) if name in LAYERS else built(name)
    copy = check_config(thing)
    written = keras.saving.serialize_keras_object(thing)
    written.pop("compile_config", None)
    written = json.loads(json.dumps(written))
    again = keras.saving.deserialize_keras_object(written)
    assert type(again) is type(copy) is type(thing)
    if name in LAYERS:
        copy.build(LAYERS[name].shape)
    shapes = [tuple(weight.shape) for weight in thing.weights]
    assert [tuple(weight.shape) for weight in copy.weights] == shapes


@pytest.mark.parametrize("name", EVERYTHING)
def test_keras_file(name, tmp_path):
    model = built(name)
    model.save(tmp_path / "model.keras")
    copy = keras.models.load_model(tmp_path / "model.keras", compile=False)
    assert type(copy) is type(model)
    for old, new in zip(model.weights, copy.weights, strict=True):
        np.testing.assert_array_equal(new, old)
    inputs = inputs_of(name)
    same_outputs(copy(inputs), model(inputs), tolerance=0)


@pytest.mark.parametrize("name", cases("clone_model", [*LAYERS, *MODELS]))
def test_clone_model(name):
    """A clone has the same weights, in the same places, of its own."""
    model = built(name)
    clone = keras.models.clone_model(model)
    assert len(clone.weights) == len(model.weights)
    assert not {id(w) for w in clone.weights} & {id(w) for w in model.weights}
    clone.set_weights(model.get_weights())
    inputs = inputs_of(name)
    same_outputs(clone(inputs), model(inputs))


@pytest.mark.parametrize("name", cases("default_optimizer", ["tasks"]))
def test_tasks_train_with_our_optimizer_by_default(name):
    for task in TASKS:
        assert isinstance(built(task).optimizer, PKMAdam), task


@pytest.mark.parametrize(
    "state", cases("task_in_file", ["compiled", "uncompiled"])
)
def test_a_task_comes_back_as_it_was_compiled(state, tmp_path):
    backbone = built("MemoryBertBackbone")
    task = QuestionAnswerer(backbone, compile=False)
    if state == "compiled":
        task.compile(PKMAdam(0.125))
        # As after a fit: Keras warns if there are no moments to load.
        task.optimizer.build(task.trainable_variables)
    task.save(tmp_path / "task.keras")
    copy = keras.models.load_model(tmp_path / "task.keras")
    assert copy.compiled == task.compiled
    if state == "compiled":
        assert isinstance(copy.optimizer, PKMAdam)
        assert copy.optimizer.learning_rate == 0.125
