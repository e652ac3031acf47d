import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.layers.find_memories import find_memories
from keras_pkm.teaching import MemoryTeacher
from keras_pkm.teaching import SlotImportance
from tests.strategies import each_strategy
from tests.teaching.models import SLOTS
from tests.teaching.models import count_reads
from tests.teaching.models import make_batch
from tests.teaching.models import make_loss
from tests.teaching.models import make_model
from tests.teaching.models import md5
from tests.teaching.models import tables
from tests.teaching.models import teach


def others(model):
    values = {id(m.memory_values) for m in find_memories(model).values()}
    return [v.numpy() for v in model.variables if id(v) not in values]


def loss_of(model, batch):
    x, y = batch
    return float(make_loss()(y, model(x, training=False)))


@pytest.mark.parametrize("rule", ["adam", "sgd"])
def test_learns_by_changing_rows_that_are_read_and_nothing_else(rule):
    model, batch = make_model(), make_batch()
    trainable = [variable.trainable for variable in model.variables]
    before, start, loss = others(model), tables(model), loss_of(model, batch)
    read = count_reads(model, batch[0])
    rate = 1.0 if rule == "sgd" else 0.02
    teacher = MemoryTeacher(model, rate, rule, loss=make_loss())
    assert teacher.teach([batch], steps=1) == 1

    assert loss_of(model, batch) < loss
    for old, new in zip(before, others(model)):
        np.testing.assert_array_equal(old, new)
    for number, table in tables(model).items():
        changed = (table != start[number]).any(axis=1)
        assert 0 < changed.sum() < SLOTS
        assert not (changed & (read[number] == 0)).any()
    assert [v.trainable for v in model.variables] == trainable
    assert not model.compiled


def test_a_step_of_gradient_descent_by_hand():
    model, (x, y) = make_model(), make_batch()
    memories = find_memories(model)
    values = {number: m.memory_values for number, m in memories.items()}
    with tf.GradientTape() as tape:
        tape.watch([each.value for each in values.values()])
        loss = make_loss()(y, model(x, training=False))
    gradients = tape.gradient(loss, {n: v.value for n, v in values.items()})
    expected = {
        number: values[number].numpy()
        - np.float32(0.5) * tf.convert_to_tensor(gradient).numpy()
        for number, gradient in gradients.items()
    }
    MemoryTeacher(model, 0.5, "sgd", loss=make_loss()).teach([(x, y)], 1)
    for number, table in tables(model).items():
        np.testing.assert_allclose(table, expected[number], atol=1e-7)


def test_chosen_slots_are_the_most_important_of_each_batch():
    model = make_model()
    background = [make_batch(seed, rows=2)[0] for seed in range(10, 30)]
    importance = SlotImportance.of_background(model, background)
    batch = make_batch()
    best = importance.best(count_reads(model, batch[0]), 5)
    start = tables(model)
    teacher = MemoryTeacher(
        model, 0.02, slots=5, importance=importance, loss=make_loss()
    )
    teacher.teach([batch], steps=1)
    optimizer = teacher._optimizer
    for number, memory in find_memories(model).items():
        table = memory.memory_values.numpy()
        (changed,) = np.nonzero((table != start[number]).any(axis=1))
        assert 0 < len(changed) <= 5
        assert set(changed) <= set(best[number].tolist())
        index = optimizer._get_variable_index(memory.memory_values)
        for moments in (optimizer._momentums, optimizer._velocities):
            (moved,) = np.nonzero(moments[index].numpy().any(axis=1))
            assert set(moved) == set(changed)


def test_batches_are_gone_through_again_until_enough():
    model = make_model()
    seen = []

    def batches():
        class Batches:
            def __iter__(self):
                seen.append("pass")
                yield from (make_batch(0), make_batch(1))

        return Batches()

    asked = []

    def until():
        asked.append(True)
        return len(asked) > 5

    teacher = MemoryTeacher(model, loss=make_loss())
    assert teacher.teach(batches(), steps=100, until=until) == 5
    assert len(seen) == 3
    assert teacher.teach(batches(), steps=3) == 3
    assert teacher.teach([], steps=3) == 0


def test_weights_of_examples_count():
    x, y = make_batch()
    weights = np.zeros(y.shape, "float32")
    weights[0] = 1
    one, other = make_model(), make_model()
    MemoryTeacher(one, loss=make_loss()).teach([(x, y, weights)], 1)
    y = np.where(weights > 0, y, (y + 1) % 3)
    MemoryTeacher(other, loss=make_loss()).teach([(x, y, weights)], 1)
    for number, table in tables(one).items():
        np.testing.assert_array_equal(table, tables(other)[number])


def test_the_compiled_loss_is_the_default():
    one, other = make_model(), make_model()
    one.compile(optimizer="sgd", loss=make_loss())
    optimizer = one.optimizer
    MemoryTeacher(one).teach([make_batch()], 2)
    MemoryTeacher(other, loss=make_loss()).teach([make_batch()], 2)
    assert one.optimizer is optimizer and int(optimizer.iterations) == 0
    for number, table in tables(one).items():
        np.testing.assert_allclose(table, tables(other)[number], atol=1e-6)


def test_frozen_values_are_written_all_the_same():
    model = make_model()
    model.trainable = False
    assert teach(model).num_rows > 0


def test_mistakes():
    model = make_model()
    plain = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="must have a memory to write into"):
        MemoryTeacher(plain, loss=make_loss())
    with pytest.raises(ValueError, match="`loss` must be given"):
        MemoryTeacher(model)
    with pytest.raises(ValueError, match="must be given together"):
        MemoryTeacher(model, slots=5, loss=make_loss())
    with pytest.raises(
        ValueError, match="must be made for the model's memories"
    ):
        importance = SlotImportance(1, {1: np.zeros(SLOTS, "int32")})
        MemoryTeacher(model, slots=5, importance=importance, loss=make_loss())
    with pytest.raises(ValueError, match="`slots` must be a positive"):
        MemoryTeacher(model, slots=0, loss=make_loss())
    with pytest.raises(ValueError, match="`memory_rule` must be"):
        MemoryTeacher(model, rule="adagrad", loss=make_loss())


@pytest.mark.parametrize(
    ("wrap", "received"),
    [
        (lambda x, y: (x, y), "a batch of the type `ndarray`"),
        (lambda x, y: [x], "a batch of the type `ndarray`"),
        (lambda x, y: [(x,)], "a batch of the type `tuple` and length 1"),
    ],
)
def test_batches_that_are_no_tuples(wrap, received):
    model = make_model()
    teacher = MemoryTeacher(model, loss=make_loss())
    x, y = np.zeros((2, 3, 12), "float32")
    with pytest.raises(ValueError, match=rf"{received}. Pass .* `\[\(x, y\)"):
        teacher.teach(wrap(x, y), steps=1)


@each_strategy
def test_teaches_under_any_strategy_of_one_device(make_strategy, is_inside):
    strategy = make_strategy()
    expected = teach(make_model())
    with strategy.scope():
        model = make_model()
    with strategy.scope() if is_inside else contextlib.nullcontext():
        start = md5(model)
        if strategy.num_replicas_in_sync > 1:
            with pytest.raises(ValueError, match="`model` must be on one"):
                teach(model)
            assert md5(model) == start
            return
        patch = teach(model)
        assert_same_changes(patch, expected)
        teach(model, slots=4, importance=importance_of(model))
        with pytest.raises(ValueError, match="in the reverse order"):
            patch.revert(model)


def importance_of(model):
    background = [make_batch(seed)[0] for seed in (7, 8)]
    return SlotImportance.of_background(model, background)


def assert_same_changes(actual, expected):
    assert actual.memories.keys() == expected.memories.keys()
    for number, changes in expected.memories.items():
        np.testing.assert_array_equal(
            actual.memories[number].slots, changes.slots
        )
        np.testing.assert_allclose(
            actual.memories[number].new, changes.new, rtol=0, atol=1e-6
        )


def test_a_model_of_another_scope_is_refused(mirrored):
    one = tf.distribute.MirroredStrategy(["/cpu:0"])
    plain = make_model()
    with mirrored.scope():
        on_two = make_model()
    for model, scope in (
        (plain, one.scope()),
        (plain, mirrored.scope()),
        (keras.Model(on_two.inputs, on_two.outputs), contextlib.nullcontext()),
    ):
        with scope, pytest.raises(ValueError, match="`model` must be"):
            MemoryTeacher(model, loss=make_loss())
