"""Rows that may not be trained, and the rule of gradient descent."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.layers import ProductKeyMemory
from keras_pkm.optimizers import PKMAdam
from tests.contracts import fresh_rng
from tests.optimizers.row_sparse import slices
from tests.optimizers.row_sparse import table


@pytest.mark.parametrize("compiled", [False, True])
def test_gradient_descent_by_hand(compiled):
    """Row 0 is read twice in step 1, row 2 in both, row 1 never."""
    values = table([[1, 2], [3, 4], [5, 6]])
    optimizer = PKMAdam(1.0, 0.5, memory_rule="sgd")
    optimizer.build([values])
    apply = tf.function(optimizer.apply) if compiled else optimizer.apply
    apply([slices([0, 2, 0], [[1, 0], [2, -2], [3, 1]], (3, 2))])
    apply([slices([2], [[1, 4]], (3, 2))])
    expected = [[1 - 0.5 * 4, 2 - 0.5 * 1], [3, 4], [5 - 1.5, 6 - 1]]
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("rule", ["adam", "sgd"])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_only_chosen_slots_change(rule, dense, compiled):
    """And they change as they do where all slots are trained."""
    rng = fresh_rng()
    first, gradient = rng.normal(size=(2, 8, 4))
    results = []
    for options in ({}, {"only_chosen_slots": True}):
        values = table(first)
        optimizer = PKMAdam(1.0, 0.1, memory_rule=rule, **options)
        optimizer.build([values])
        apply = tf.function(optimizer.apply) if compiled else optimizer.apply
        grad = slices(np.arange(8), gradient, (8, 4))
        grads = [tf.convert_to_tensor(grad) if dense else grad]
        if options:
            apply(grads)
            # None is chosen yet.
            np.testing.assert_array_equal(values, first.astype("float32"))
            optimizer.iterations.assign(0)
            optimizer.choose_slots(values, [1])
            optimizer.choose_slots(values, [6, 2, 6])
        apply(grads)
        moments = optimizer._momentums[0], optimizer._velocities[0]
        results.append([np.array(each) for each in (values, *moments)])
    for everything, chosen, start in zip(*results, (first, 0 * first, 0)):
        start = np.broadcast_to(start, (8, 4)).astype("float32")
        rows = [2, 6]
        np.testing.assert_array_equal(chosen[rows], everything[rows])
        rest = [0, 1, 3, 4, 5, 7]
        np.testing.assert_array_equal(chosen[rest], start[rest])


def test_clipping_counts_only_chosen_slots():
    values = table(np.zeros((3, 2)))
    optimizer = PKMAdam(
        1.0, 1.0, memory_rule="sgd", only_chosen_slots=True, global_clipnorm=5.0
    )
    optimizer.build([values])
    optimizer.choose_slots(values, [0])
    optimizer.apply([slices([0, 1], [[3, 4], [300, 400]], (3, 2))])
    np.testing.assert_allclose(values, [[-3, -4], [0, 0], [0, 0]], rtol=1e-6)


def test_a_bad_gradient_of_another_slot_skips_the_step():
    values = table(np.zeros((3, 2)))
    optimizer = PKMAdam(1.0, 1.0, only_chosen_slots=True)
    optimizer.build([values])
    optimizer.choose_slots(values, [0])
    optimizer.apply([slices([0, 1], [[3, 4], [np.nan, 0]], (3, 2))])
    np.testing.assert_array_equal(values, np.zeros((3, 2)))
    assert optimizer.iterations == 0


def test_two_devices_train_the_chosen_slots(mirrored):
    """Each device reads its own slots; what changes on one does on both."""
    with mirrored.scope():
        values = table(np.zeros((4, 2)))
        options = {"memory_rule": "sgd", "only_chosen_slots": True}
        optimizer = PKMAdam(1.0, 1.0, **options)
        optimizer.build([values])
    optimizer.choose_slots(values, [1, 2])

    @tf.function
    def step():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        optimizer.apply([slices([0, 1 + replica], np.ones((2, 2)), (4, 2))])

    mirrored.run(step)
    for copy in mirrored.experimental_local_results(values.value):
        expected = [[0, 0], [-1, -1], [-1, -1], [0, 0]]
        np.testing.assert_array_equal(copy, expected)


def test_the_choice_is_saved(tmp_path):
    def build():
        memory = ProductKeyMemory(2, num_heads=1, top_k=1, key_dim=2)
        model = keras.Sequential([keras.Input((2,)), memory])
        optimizer = PKMAdam(
            1.0, 0.25, only_chosen_slots=True, memory_rule="sgd"
        )
        model.compile(optimizer, loss="mse")
        optimizer.build(model.trainable_variables)
        return model

    model = build()
    model.optimizer.choose_slots(model.layers[-1].table.values, [1])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").optimizer
    assert loaded.get_config() == model.optimizer.get_config()
    assert loaded.memory_rule == "sgd" and loaded.only_chosen_slots
    (chosen,) = [v for v in loaded.variables if v.name == "chosen_slots"]
    np.testing.assert_array_equal(chosen, [False, True, False, False])


@pytest.mark.parametrize(
    ("slots", "rule"),
    [([4], "0 to 3"), ([-1], "0 to 3"), ([0.5], "integers"), (["a"], "integ")],
)
def test_slots_that_are_none(slots, rule):
    values = table(np.zeros((4, 2)))
    optimizer = PKMAdam(only_chosen_slots=True)
    optimizer.build([values])
    with pytest.raises(ValueError, match=rule):
        optimizer.choose_slots(values, slots)


def test_mistakes():
    values = table(np.zeros((4, 2)))
    message = "optimizer that was made with `only_chosen_slots=True` and has"
    for options, builds in (({}, True), ({"only_chosen_slots": True}, False)):
        optimizer = PKMAdam(**options)
        if builds:
            optimizer.build([values])
        with pytest.raises(ValueError, match=re.escape(message)):
            optimizer.choose_slots(values, [1])
    with pytest.raises(ValueError, match='`memory_rule` must be "adam" or'):
        PKMAdam(memory_rule="momentum")
