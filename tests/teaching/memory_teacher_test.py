import contextlib
import itertools
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.layers.memories import memories
from keras_pkm.teaching import MemoryTeacher
from keras_pkm.teaching import SlotImportance
from keras_pkm.teaching.fact_prompts import tokenizer_of
from tests.any_backbone.tiny_families import MEMORY
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_causal_lm
from tests.probing.forms import TEXTS
from tests.probing.forms import Batches
from tests.probing.forms import causal_lm
from tests.probing.forms import classifier
from tests.probing.forms import dataset
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
    values = {id(m.table.values) for m in memories(model).values()}
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
    found = memories(model)
    values = {number: m.table.values for number, m in found.items()}
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
    for number, memory in memories(model).items():
        table = memory.table.values.numpy()
        (changed,) = np.nonzero((table != start[number]).any(axis=1))
        assert 0 < len(changed) <= 5
        assert set(changed) <= set(best[number].tolist())
        for moments in optimizer._kept.moments[id(memory.table.values)]:
            (moved,) = np.nonzero(moments.numpy().any(axis=1))
            assert set(moved) == set(changed)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_loss_that_was_compiled_since_is_the_default():
    model = make_model()
    model.compile(loss=make_loss())
    teacher = MemoryTeacher(model)
    teacher.teach([make_batch()], 1)
    model.compile(loss=lambda true, predicted: 0 * predicted)
    with pytest.raises(ValueError, match="gradient of a taught weight"):
        teacher.teach([make_batch()], 1)


@pytest.mark.slow
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
    with pytest.raises(ValueError, match="`rule` must be"):
        MemoryTeacher(model, rule="adagrad", loss=make_loss())


def test_batches_without_labels_and_none():
    teacher = MemoryTeacher(make_model(), loss=make_loss())
    x, _ = make_batch()
    for data in (x, (x,), [x], [(x,)], dataset(x, 3)):
        with pytest.raises(ValueError, match=r"without labels.*`\[\(x, y\)"):
            teacher.teach(data, steps=1)
    for data in ([], dataset(make_batch(), 3).take(0), iter([])):
        with pytest.raises(ValueError, match="at least one batch"):
            teacher.teach(data, steps=1)


def test_batches_are_what_fit_takes(monkeypatch):
    """Each form has two batches of three examples; four steps are taken."""
    x, y = make_batch()
    weights = np.arange(6.0)
    halves = [
        (x[:3], y[:3], weights[:3]),
        (x[3:], y[3:], weights[3:]),
    ]
    taken = []
    teacher = MemoryTeacher(make_model(), loss=make_loss())
    monkeypatch.setattr(
        teacher, "_step", lambda *batch: taken.append(batch) or 1.0
    )
    for data, options in (
        (halves, {}),
        ((x, y, weights), {"batch_size": 3}),
        ((tf.constant(x), tf.constant(y), weights), {"batch_size": 3}),
        ((x.astype("float64"), y.tolist(), list(weights)), {"batch_size": 3}),
        (dataset((x, y, weights), 3), {}),
        (dataset((x, y, weights), 3).repeat(), {}),
        (Batches(halves), {}),
        (Batches(halves, is_endless=True), {}),
        (iter(halves * 2), {}),
        (itertools.cycle(halves), {}),
        ((each for each in halves * 4), {}),
    ):
        taken.clear()
        assert teacher.teach(data, 4, **options) == 4
        for batch, expected in zip(taken, halves * 2, strict=True):
            for ours, theirs in zip(batch, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    with pytest.raises(ValueError, match="`batch_size` must be `None`"):
        teacher.teach(halves, 1, batch_size=3)


@pytest.mark.parametrize("steps", [0, -1, 1.5, None, "2"])
def test_steps_that_are_no_number_of_steps(steps):
    teacher = MemoryTeacher(make_model(), loss=make_loss())
    with pytest.raises(ValueError, match="`steps` must be a positive integer"):
        teacher.teach([make_batch()], steps)


@pytest.mark.slow
def test_a_generator_is_read_no_further_than_needed():
    source = iter([make_batch(seed) for seed in range(5)])
    teacher = MemoryTeacher(make_model(), loss=make_loss())
    assert teacher.teach(source, steps=2) == 2
    assert teacher.teach(source, 9, until=lambda: True) == 0
    assert len([*source]) == 3


def bad(*batches):
    """A generator with a fault at the end."""
    yield from batches
    raise RuntimeError("the source is broken")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: iter([make_batch(1)] * 2), "steps=5, and 2 batches. Pass a l"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                (lambda: iter([make_batch(1), make_batch(1)[:1]]), "without l"),
                (lambda: [make_batch(1), "text"], "`batches` must be arrays"),
                (lambda: bad(make_batch(1)), "the source is broken"),
            )
        ),
    ],
)
def test_what_was_taught_before_an_error_can_be_reverted(data, message):
    model = make_model()
    before = md5(model)
    teacher = MemoryTeacher(model, loss=make_loss())
    with pytest.raises((ValueError, RuntimeError), match=message):
        teacher.teach(data(), 5)
    teacher.make_patch().revert(model)
    assert md5(model) == before


def test_a_memory_that_was_just_added_learns():
    task = make_causal_lm("GPT2", memory=MEMORY)
    x = inputs_of(task.backbone)
    teacher = MemoryTeacher(task)
    assert teacher.teach([(x, x["token_ids"])], steps=2) == 2
    assert teacher.make_patch().num_rows > 0


@pytest.mark.slow
def test_a_batch_without_a_gradient_is_no_error_among_others():
    x, y = make_batch()
    none = (x, y, np.zeros(y.shape, "float32"))
    model = make_model()
    teacher = MemoryTeacher(model, loss=make_loss())
    before = md5(model)
    for data, steps in (([none], 3), ([none, (x, y)], 1), (iter([none]), 1)):
        with pytest.raises(ValueError, match="gradient .* must not be zero"):
            teacher.teach(data, steps)
    assert md5(model) == before
    assert teacher.teach([none, (x, y)], 2) == 2
    assert teacher.teach(iter([none, none, (x, y)]), 3) == 3
    assert teacher.teach([none], 3, until=lambda: True) == 0
    assert md5(model) != before


@pytest.mark.slow
def test_a_whole_pass_without_a_gradient_is_enough():
    x, y = make_batch()
    calls = []
    teacher = MemoryTeacher(make_model(), loss=make_loss())
    with pytest.raises(ValueError, match="Received: 2 steps"):
        teacher.teach(
            [(x, y, np.zeros(y.shape))] * 2, 1000, lambda: calls.append(1)
        )
    assert len(calls) <= 3


def test_gradients_that_are_not_finite_are_told():
    x, y = make_batch()
    model = make_model()
    before = md5(model)
    teacher = MemoryTeacher(model, loss=make_loss())
    with pytest.warns(RuntimeWarning, match="Nothing was taught.*not finite"):
        teacher.teach([(x * np.nan, y)], 2)
    assert md5(model) == before


def test_slots_of_which_none_is_important_are_told():
    model = make_model()
    x, y = make_batch()
    everywhere = {n: np.ones(SLOTS, "int32") for n in memories(model)}
    teacher = MemoryTeacher(
        model,
        slots=5,
        importance=SlotImportance(1, everywhere),
        loss=make_loss(),
    )
    with pytest.raises(ValueError, match="With `slots`, the background may"):
        teacher.teach([(x, y)], 3)


@pytest.mark.slow
def test_texts():
    task = classifier()
    texts, labels = TEXTS[:8], [0, 1] * 4
    before = md5(task)
    teacher = MemoryTeacher(task, learning_rate=0.01)
    for data in (
        (texts, labels),
        [(texts, np.array(labels))],
        dataset((texts, labels), 4),
        Batches([(np.array(texts), np.array(labels))]),
    ):
        assert teacher.teach(data, steps=2) == 2
    patch = teacher.make_patch()
    assert patch.num_rows > 0
    patch.revert(task)
    assert md5(task) == before
    for data in (texts, [texts], dataset(texts, 4)):
        with pytest.raises(ValueError, match="without labels"):
            teacher.teach(data, steps=1)
    # Features, as before.
    features = task.preprocessor(texts)
    assert teacher.teach([(features, np.array(labels))], steps=1) == 1
    task.preprocessor = None
    with pytest.raises(ValueError, match="texts, for a `.*` without a prep"):
        MemoryTeacher(task).teach((texts, labels), 1)


@pytest.mark.slow
def test_texts_alone_teach_a_causal_language_model():
    task = causal_lm()
    # The probe that chooses slots gets what the preprocessor has made.
    importance = SlotImportance.of_background(task, TEXTS, batch_size=4)
    teacher = MemoryTeacher(task, slots=9, importance=importance)
    for data in (["g g g"] * 4, [["g g g"] * 4], dataset(["g g g"] * 4)):
        assert teacher.teach(data, steps=2) == 2
    assert 0 < teacher.make_patch().num_rows <= 2 * 9


@pytest.fixture(scope="module")
def taught_without_a_strategy():
    return teach(make_model())


@pytest.mark.slow
@each_strategy
def test_teaches_under_any_strategy_of_one_device(
    make_strategy, is_inside, taught_without_a_strategy
):
    strategy = make_strategy()
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
        assert_same_changes(patch, taught_without_a_strategy)
        teach(model, slots=4, importance=importance_of(model))
        with pytest.raises(ValueError, match="in the reverse order"):
            patch.revert(model)


def importance_of(model):
    background = [make_batch(seed) for seed in (7, 8)]
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


@pytest.mark.slow
def test_a_step_is_compiled_again_for_other_weights():
    model, batch = make_model(), make_batch()
    teacher = MemoryTeacher(model, loss=make_loss())
    teacher.teach([batch], steps=1)
    for layer in model.layers:
        if isinstance(layer, keras.layers.Dense):
            layer.enable_lora(2)
            layer.lora_kernel_b.assign(np.tile([10, -10, 20], (2, 1)))
    largest = teacher._step(*batch, None)
    fresh = MemoryTeacher(model, loss=make_loss())
    # The values have moved by a step of Adam since.
    assert largest == pytest.approx(fresh._step(*batch, None), rel=0.05)


def test_float16_is_taught_with_loss_scaling():
    """These gradients are zero without it."""
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = make_model()
    finally:
        keras.config.set_dtype_policy("float32")
    x, y = make_batch()
    start = tables(model)
    weights = np.full(y.shape, 1e-7, "float32")
    teacher = MemoryTeacher(model, loss=make_loss())
    teacher.teach([(x, y, weights)], steps=3)
    assert any((table != start[n]).any() for n, table in tables(model).items())


def test_a_tokenizer_of_one_s_own_leaves_the_start_to_the_preprocessor():
    tokenizer = types.SimpleNamespace(start_token_id=1)
    preprocessor = types.SimpleNamespace(
        tokenizer=tokenizer, add_start_token=True
    )
    task = types.SimpleNamespace(preprocessor=preprocessor)
    tokenize, first = tokenizer_of(task, lambda text: [5, 6])
    assert (tokenize("a"), first) == ([5, 6], [1])
    tokenize, _ = tokenizer_of(task, lambda text: [1, 5])
    with pytest.raises(ValueError, match="the ids of the text alone"):
        tokenize("a")
