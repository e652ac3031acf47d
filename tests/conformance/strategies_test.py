"""What reads or writes a model's variables, whatever strategy made them."""

import contextlib

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.layers.memories import memories
from keras_pkm.models import MemoryProbe
from keras_pkm.models import add_memory
from keras_pkm.models import copy_matching_weights
from keras_pkm.models import freeze_except_memory
from keras_pkm.models import freeze_memory
from keras_pkm.ops.tensorflow.replicas import components
from keras_pkm.ops.tensorflow.replicas import strategy_of
from keras_pkm.optimizers import PKMAdam
from keras_pkm.teaching import SlotImportance
from keras_pkm.teaching.memory_patch import fingerprint
from tests.conformance.descriptors import FILLED
from tests.conformance.descriptors import MEMORY
from tests.conformance.descriptors import inputs_of
from tests.conformance.descriptors import make_model
from tests.strategies import each_strategy
from training.measuring.ablation import ablated_memory

pytestmark = pytest.mark.slow

MODEL = "MemoryBertBackbone"


def halves():
    """A model like the tests', all of whose weights are one half."""
    model = make_model(MODEL)
    for weight in model.weights:
        weight.assign(np.full(weight.shape, 0.5, "float32"))
    return model


def warm_start(model, tmp_path):
    before = model.get_weights()
    copy_matching_weights(halves(), model)
    found = replicas_of(model)
    model.set_weights(before)
    return found


def warm_start_from(model, tmp_path):
    target = halves()
    copy_matching_weights(model, target)
    return replicas_of(target)


def with_added_memory(model, tmp_path):
    new = add_memory(model.plain_backbone, (1,), MEMORY, "pkm")
    return [w.numpy() for w in new.weights if "/memory/" not in w.path]


def frozen(model, tmp_path):
    counts = []
    for freeze in (freeze_memory, freeze_except_memory):
        freeze(model)
        counts.append(len(model.trainable_weights))
        model.trainable = False
        model.trainable = True
    return counts


def saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "model.keras")
    return replicas_of(keras.models.load_model(tmp_path / "model.keras"))


def as_preset(model, tmp_path):
    model.save_to_preset(tmp_path / "preset")
    return replicas_of(
        keras_hub.models.Backbone.from_preset(str(tmp_path / "preset"))
    )


def cloned(model, tmp_path):
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    return replicas_of(clone)


def measured(model, tmp_path):
    data = tf.data.Dataset.from_tensors(inputs_of(MODEL))
    usage = MemoryProbe(model).measure(data)[1]
    importance = SlotImportance.of_background(model, data)
    return [usage["mu"], importance.document_frequencies[1]]


def without_values(model, tmp_path):
    before = replicas_of(model)
    with ablated_memory(model, "zero"):
        found = replicas_of(model)
    for old, new in zip(before, replicas_of(model), strict=True):
        np.testing.assert_array_equal(new, old)
    return found


def outputs(model, tmp_path):
    return keras.tree.flatten(model(inputs_of(MODEL)))


def replicas_of(model):
    """The weights of a model, which are the same on all replicas."""
    for weight in model.weights:
        first, *others = [each.numpy() for each in components(weight)]
        for other in others:
            np.testing.assert_array_equal(other, first, err_msg=weight.path)
    return [weight.numpy() for weight in model.weights]


OPERATIONS = (
    outputs,
    warm_start,
    warm_start_from,
    with_added_memory,
    frozen,
    saved_and_loaded,
    as_preset,
    cloned,
    measured,
    without_values,
)


@pytest.fixture(scope="module")
def without_a_strategy(tmp_path_factory):
    """The fingerprint of the model, and what each operation returns."""
    model = make_model(MODEL)
    return fingerprint(model), {
        operation: operation(model, tmp_path_factory.mktemp("plain"))
        for operation in OPERATIONS
    }


@each_strategy
def test_operations_outside_of_training(
    make_strategy, is_inside, without_a_strategy, tmp_path
):
    strategy = make_strategy()
    with strategy.scope():
        model = make_model(MODEL)
    state, results = without_a_strategy
    for operation, expected in results.items():
        folder = tmp_path / operation.__name__
        folder.mkdir()
        with strategy.scope() if is_inside else contextlib.nullcontext():
            found = operation(model, folder)
            assert fingerprint(model) == state, operation.__name__
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(
                one, other, rtol=0, atol=1e-5, err_msg=operation.__name__
            )


@each_strategy
def test_slots_are_chosen_on_all_replicas(make_strategy, is_inside):
    strategy = make_strategy()
    with strategy.scope():
        model = make_model(MODEL)
        optimizer = PKMAdam(only_chosen_slots=True)
        optimizer.build(model.trainable_variables)
    values = memories(model)[1].table.values
    with strategy.scope() if is_inside else contextlib.nullcontext():
        optimizer.choose_slots(values, [1, 3])
    (chosen,) = (v for v in optimizer.variables if v.name == "chosen_slots")
    for mask in components(chosen):
        assert np.nonzero(mask.numpy())[0].tolist() == [1, 3]


@each_strategy
def test_a_memory_is_added_in_the_strategy_of_the_model(
    make_strategy, is_inside
):
    strategy = make_strategy()
    with strategy.scope():
        plain = keras_hub.models.GPT2CausalLM(
            keras_hub.models.GPT2Backbone(20, 1, 2, 8, 8, dropout=0.0),
            preprocessor=None,
        )
    with strategy.scope() if is_inside else contextlib.nullcontext():
        task = add_memory(plain, (1,), FILLED)
    assert strategy_of(task) is strategy
    features = {"token_ids": [[3, 7]] * 2, "padding_mask": [[1, 1]] * 2}
    features = {name: np.array(each) for name, each in features.items()}
    labels = np.array([[7, 4]] * 2)
    data = tf.data.Dataset.from_tensors((features, labels))
    # Graphs of it on two replicas are tried in tests/any_backbone.
    task.run_eagerly = True
    task.fit(data, shuffle=False, verbose=0)
    replicas_of(task)


def test_a_memory_is_not_added_in_another_scope(mirrored):
    plain = keras_hub.models.GPT2Backbone(20, 1, 2, 8, 8)
    with mirrored.scope(), pytest.raises(ValueError, match="`model` must be"):
        add_memory(plain, (1,), MEMORY)


def test_gradients_outside_of_the_scope(mirrored):
    """As a user's own gradient outside of `fit` does."""
    with mirrored.scope():
        model = make_model(MODEL)
    plain = make_model(MODEL)

    def gradient(model):
        weights = [weight.value for weight in model.trainable_weights]
        with tf.GradientTape() as tape:
            found = model(inputs_of(MODEL))
            loss = tf.reduce_sum(found["sequence_output"] ** 2)
        gradients = tape.gradient(loss, weights)
        return [tf.convert_to_tensor(g) for g in gradients if g is not None]

    for one, other in zip(gradient(model), gradient(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-3)
