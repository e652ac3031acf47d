"""What each way to teach trains, and what it leaves as it is."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.teaching import SlotImportance
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_masked_lm
from tests.slow_tier import slow_but
from training.runs.user_error import UserError
from training.teaching.methods import ALL_MATRICES
from training.teaching.methods import Lora
from training.teaching.methods import make_teacher

TRAINED = {
    "values": {"values"},
    "slots": {"values"},
    "head": {"mlm_head"},
    "ffn": {"feedforward_intermediate_dense", "feedforward_output_dense"},
    "lora": {"lora_kernel_a", "lora_kernel_b"},
}


def make_task(**sizes):
    keras.utils.set_random_seed(0)
    return tiny_masked_lm(num_layers=1, memory_layers=(1,), **sizes)


def batch_of(seed, **sizes):
    return masked_batch(np.random.default_rng(seed), **sizes)


def changed(task, before):
    return {
        variable.path
        for variable in task.weights
        if not np.array_equal(before[variable.path], variable)
    }


def values_of(task):
    return {variable.path: variable.numpy() for variable in task.weights}


@pytest.fixture(scope="module")
def step_of_all():
    """All weights before and after a step, at a rate of 0.01."""
    task = make_task()
    start = values_of(task)
    make_teacher(task, "all", learning_rate=0.01).teach([batch_of(0)], 1)
    return start, values_of(task)


@pytest.mark.parametrize("method", slow_but("values", TRAINED))
def test_trains_its_part_and_nothing_else(method):
    task, batch = make_task(), batch_of(0)
    background = [batch_of(seed, batch=1) for seed in (1, 2, 3)]
    importance = SlotImportance.of_background(task, background)
    teacher = make_teacher(
        task, method, learning_rate=0.01, slots=50, importance=importance
    )
    before = values_of(task)
    assert teacher.teach([batch], steps=2) == 2
    found = changed(task, before)
    assert found
    parts = TRAINED[method]
    assert all(any(part in path for part in parts) for path in found)
    # All parts, in all layers.
    assert all(any(part in path for path in found) for part in parts)


@pytest.mark.slow
def test_lora_on_all_matrices():
    task, batch = make_task(), batch_of(0)
    lora = Lora(3, ALL_MATRICES)
    teacher = make_teacher(task, "lora", learning_rate=0.01, lora=lora)
    before = values_of(task)
    teacher.teach([batch], steps=2)
    found = changed(task, before)
    for layer in ALL_MATRICES:
        for kernel in ("a", "b"):
            (path,) = (
                path
                for path in found
                if path.endswith(f"{layer}/lora_kernel_{kernel}")
            )
            assert 3 in before[path].shape
    assert len(found) == 2 * len(ALL_MATRICES)


@pytest.mark.slow
def test_values_can_have_a_rate_of_their_own(step_of_all):
    start, as_all = step_of_all
    task = make_task()
    teacher = make_teacher(task, "all", learning_rate=0.01, of_values=10)
    teacher.teach([batch_of(0)], steps=1)
    for path, value in values_of(task).items():
        factor = 10 if path.endswith("table/values") else 1
        distance = factor * np.abs(as_all[path] - start[path]).max()
        moved = np.abs(value - start[path]).max()
        assert moved == pytest.approx(distance, rel=0.01)


@pytest.mark.slow
def test_a_step_goes_a_share_of_the_way_back(step_of_all):
    start, free = step_of_all
    task = make_task()
    teacher = make_teacher(task, "all", learning_rate=0.01, towards_old=20)
    teacher.teach([batch_of(0)], 1)
    drawn = values_of(task)
    assert changed(task, start)
    for path, value in start.items():
        expected = value + 0.8 * (free[path] - value)
        np.testing.assert_allclose(drawn[path], expected, atol=1e-6)


@pytest.mark.slow
def test_all_weights_are_trained_but_the_pooler(step_of_all):
    start, after = step_of_all
    left = {path for path in start if np.array_equal(start[path], after[path])}
    assert all(
        "pooled_dense" in path or "moving_" in path or "position" in path
        for path in left
    ), left


@pytest.mark.slow
def test_replay_adds_old_examples_of_another_length():
    batches = [batch_of(0, length=12, masks=3)]
    old = batch_of(1, length=9, masks=5)
    replayed = tf.data.Dataset.from_tensors(old).repeat()
    one, other = make_task(), make_task()
    teacher = make_teacher(one, "replay", learning_rate=0.01, replayed=replayed)
    teacher.teach(batches, steps=2)
    make_teacher(other, "all", learning_rate=0.01).teach(batches, steps=2)
    assert changed(one, values_of(other))
    # With examples that have no weight it is as without them.
    x, y, weights = old
    replayed = tf.data.Dataset.from_tensors((x, y, 0 * weights)).repeat()
    one = make_task()
    teacher = make_teacher(one, "replay", learning_rate=0.01, replayed=replayed)
    teacher.teach(batches, steps=2)
    for path, value in values_of(other).items():
        np.testing.assert_allclose(
            values_of(one)[path], value, atol=1e-4, err_msg=path
        )


@pytest.mark.slow
def test_models_without_memory_have_no_values():
    task = tiny_masked_lm(num_layers=1, memory_layers=())
    for method in ("values", "slots"):
        with pytest.raises(UserError, match=f"--method {method} needs .*all"):
            make_teacher(task, method, learning_rate=0.01)
    before = values_of(task)
    make_teacher(task, "all", learning_rate=0.01).teach([batch_of(0)], 1)
    assert changed(task, before)
