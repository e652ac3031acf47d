import csv
import importlib.util
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.callbacks import MemoryUsageMonitor
from keras_pkm.callbacks.slot_counts import list_slot_counts
from keras_pkm.callbacks.slot_counts import read_slot_counts
from keras_pkm.layers import NGramMemory
from keras_pkm.layers import ProductKeyMemory
from keras_pkm.models import MemoryProbe
from keras_pkm.optimizers import PKMAdam
from tests.contracts import fresh_rng
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_masked_lm
from tests.probing.forms import TEXTS
from tests.probing.forms import Batches
from tests.probing.forms import classifier

# Of the fixture `task`.
eagerly = pytest.mark.parametrize("eager", [True])


def test_one_monitor_watches_several_trainings():
    """Each is measured by its own model, from its own step 0."""
    x, y = fresh_rng().normal(size=(2, 32, 8)).astype("float32")
    monitor = MemoryUsageMonitor((x, y), batch_size=32)
    models = []
    for seed, again in ((0, False), (1, False), (1, True)):
        if not again:
            keras.utils.set_random_seed(seed)
            memory = ProductKeyMemory(8, top_k=2, key_dim=4)
            models.append(keras.Sequential([keras.Input((8,)), memory]))
        models[-1].compile(PKMAdam(0.1, 0.1), loss="mse", run_eagerly=True)
        history = (
            models[-1]
            .fit(x, y, epochs=2 - again, callbacks=[monitor], verbose=0)
            .history
        )
        expected = MemoryProbe(models[-1]).measure((x, y), batch_size=32)
        assert history["memory_1_kl_w"][-1] == expected[1]["kl_w"]
        # Nothing is stale at the first measurement.
        assert history["memory_1_stale"][0] == 0


def test_a_fit_that_takes_no_step():
    """Each of its steps is skipped: it ends at the step of the last fit."""
    x, y = fresh_rng().normal(size=(2, 32, 8)).astype("float32")
    memory = ProductKeyMemory(8, top_k=2, key_dim=4)
    model = keras.Sequential([keras.Input((8,)), memory])
    model.compile(PKMAdam(), loss="mse", run_eagerly=True)
    monitor = MemoryUsageMonitor((x, y))
    fitted = [
        model.fit(x, labels, callbacks=[monitor], verbose=0).history
        for labels in (y, y * np.nan, y)
    ]
    steps = [history["memory_1_stale"] for history in fitted]
    assert monitor.staleness[1].last_steps.max() == 2 and steps[1] == [0]


def test_slots_that_make_no_square_have_no_grid(tmp_path):
    ids = fresh_rng().integers(1, 9, (4, 6))
    inputs = keras.Input((None,), dtype="int32")
    tokens = keras.layers.Embedding(9, 8)(inputs)
    outputs = tokens + NGramMemory(40, orders=(2,))(tokens, token_ids=inputs)
    model = keras.Model(inputs, outputs)
    model.compile(PKMAdam(), loss="mse", run_eagerly=True)
    monitor = MemoryUsageMonitor(
        (ids, np.zeros((4, 6, 8))), None, None, tmp_path
    )
    model.fit(ids, np.zeros((4, 6, 8)), callbacks=[monitor], verbose=0)
    (events,) = tmp_path.iterdir()
    tags = {
        value.tag
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    assert "memory_1_log10_reads" in tags and "memory_1_grid" not in tags


@pytest.fixture
def held_out():
    batch = masked_batch(fresh_rng(), batch=8)
    return tf.data.Dataset.from_tensor_slices(batch).batch(4)


def new_task(eager, *rates, **sizes):
    sizes = {"num_layers": 2, "memory_layers": (1, 2), **sizes}
    task = tiny_masked_lm(**sizes)
    task.backbone.pooled_dense.trainable = False
    task.compile(PKMAdam(*rates), run_eagerly=eager)
    return task


@pytest.fixture
def task(eager):
    return new_task(eager)


def fit(task, callback, epochs=2, steps=3):
    batch = masked_batch(fresh_rng(), batch=4)
    data = tf.data.Dataset.from_tensors(batch).repeat(steps)
    return task.fit(
        data, epochs=epochs, callbacks=[callback], shuffle=False, verbose=0
    )


def test_measures_into_logs_csv_and_tensorboard(held_out, tmp_path):
    task = new_task(eager=True)
    monitor = MemoryUsageMonitor(
        held_out,
        every=2,
        # A folder that does not exist yet.
        csv_path=tmp_path / "new" / "usage.csv",
        tensorboard_dir=tmp_path / "board",
    )
    history = fit(task, monitor).history
    expected = MemoryProbe(task.backbone).measure(held_out)
    assert monitor.usage == expected
    for number, figures in expected.items():
        for name, value in figures.items():
            assert history[f"memory_{number}_{name}"][-1] == value
    with open(tmp_path / "new" / "usage.csv") as file:
        rows = list(csv.DictReader(file))
    # Steps 2, 4, 6, and 3, the end of the first epoch; once each.
    assert [(row["step"], row["layer"]) for row in rows] == [
        (step, layer) for step in "2346" for layer in "12"
    ]
    assert float(rows[-1]["kl_u"]) == pytest.approx(expected[2]["kl_u"])
    (events,) = (tmp_path / "board").iterdir()
    steps = {}
    for event in tf.compat.v1.train.summary_iterator(str(events)):
        for value in event.summary.value:
            steps.setdefault(value.tag, set()).add(event.step)
    for name in ("top1_mu", "stale", "log10_reads", "grid"):
        assert steps[f"memory_2_{name}"] == {2, 3, 4, 6}


@pytest.mark.slow
def test_measuring_does_not_disturb_training(held_out):
    weights = []
    for callback in (MemoryUsageMonitor(held_out, every=1), None):
        tf.keras.utils.set_random_seed(3)
        task = new_task(False, 1e-2, **ONE_LAYER)
        rng = np.random.default_rng(0)
        data = tf.data.Dataset.from_tensors(masked_batch(rng)).repeat(3)
        callbacks = [callback] if callback else []
        task.fit(data, callbacks=callbacks, shuffle=False, verbose=0)
        weights.append(task.get_weights())
    for measured, alone in zip(*weights):
        np.testing.assert_array_equal(measured, alone)


def test_errors(held_out):
    with pytest.raises(ValueError, match="`every` must be a positive"):
        MemoryUsageMonitor(held_out, every=0)
    task = tiny_masked_lm(memory_layers=())
    task.compile()
    with pytest.raises(ValueError, match="a memory to monitor"):
        fit(task, MemoryUsageMonitor(held_out))


@eagerly
def test_counts_and_staleness(task, held_out, tmp_path):
    monitor = MemoryUsageMonitor(held_out, every=2, counts_dir=tmp_path)
    history = fit(task, monitor).history
    steps = list_slot_counts(tmp_path)
    assert steps == [2, 3, 4, 6]
    for number, metric in monitor.staleness.items():
        last = np.full(metric.num_slots, -1)
        for step in steps:
            counts = read_slot_counts(tmp_path, step)[number]
            last[counts["top1"] > 0] = step
        np.testing.assert_array_equal(metric.last_steps, last)
        usage = monitor.usage[number]
        assert usage["top1_reads"] == counts["top1"].sum()
        assert usage["top1_mu"] == np.mean(counts["top1"] > 0)
        assert history[f"memory_{number}_fresh"][-1] == usage["top1_mu"]
        assert history[f"memory_{number}_never"][-1] == np.mean(last < 0)

    again = MemoryUsageMonitor(held_out, counts_dir=tmp_path)
    again.set_model(task)
    again.on_train_begin()
    for number, metric in again.staleness.items():
        np.testing.assert_array_equal(
            metric.last_steps, monitor.staleness[number].last_steps
        )
    # Measurements of later steps than the restored one do not count.
    task.optimizer.iterations.assign(3)
    restored = MemoryUsageMonitor(held_out, counts_dir=tmp_path)
    restored.set_model(task)
    restored.on_train_begin()
    for number, metric in restored.staleness.items():
        assert metric.last_steps.max() == 3


@pytest.mark.slow
@eagerly
def test_without_a_directory_no_counts_are_read(
    task, held_out, tmp_path, monkeypatch
):
    """Not even those of another run in the current directory."""
    fit(task, MemoryUsageMonitor(held_out, counts_dir=tmp_path), epochs=1)
    assert list_slot_counts(tmp_path) == [3]
    monkeypatch.chdir(tmp_path)
    monitor = MemoryUsageMonitor(held_out)
    monitor.set_model(task)
    monitor.on_train_begin()
    for metric in monitor.staleness.values():
        assert metric.last_steps.max() == -1


def test_counts_of_another_model_are_left_out(tmp_path, caplog):
    x = np.ones((4, 5, 6), "float32")
    options = {"counts_dir": tmp_path / "counts", "csv_path": tmp_path / "csv"}
    # An empty file has no header yet.
    options["csv_path"].touch()
    model = dense_model()
    model.fit(
        x, x, verbose=0, callbacks=[MemoryUsageMonitor((x, x), **options)]
    )
    with open(options["csv_path"]) as file:
        assert [row["layer"] for row in csv.DictReader(file)] == ["1"]
    inputs = keras.Input((5, 6))
    larger = keras.Model(inputs, ProductKeyMemory(9, 2, 4, 8)(inputs))
    larger.compile(PKMAdam(), "mse")
    monitor = MemoryUsageMonitor((x, x), **options)
    monitor.set_model(larger)
    larger.optimizer.iterations.assign(1)
    monitor.on_train_begin()
    assert "must be those of the model's memories" in caplog.text
    assert monitor.staleness[1].last_steps.max() == -1


def dense_model():
    """A model whose labels would pass for inputs."""
    inputs = keras.Input((5, 6))
    model = keras.Model(inputs, ProductKeyMemory(8, 2, 4, 8)(inputs))
    model.compile(PKMAdam(), "mse")
    return model


def watched(model, x, y, data, **options):
    """The top-1 reads of two measurements."""
    monitor = MemoryUsageMonitor(data, **options)
    options = {"epochs": 2, "shuffle": False, "verbose": 0}
    logs = model.fit(x, y, callbacks=[monitor], **options).history
    return logs["memory_1_top1_reads"]


@pytest.mark.slow
def test_data_is_what_evaluate_takes():
    x, y = fresh_rng().normal(size=(2, 8, 5, 6)).astype("float32")
    batches = [(x[:4], y[:4]), (x[4:], y[4:])]
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    model = dense_model()
    for data, options in (
        (x, {}),
        ((x, y), {}),
        ((x, y, np.ones(8)), {"batch_size": 3}),
        (dataset, {}),
        (dataset.repeat(), {"steps": 2}),
        (Batches(batches), {}),
        # A generator is read once, and kept.
        (iter(batches), {}),
        (itertools.cycle(batches), {"steps": 2}),
    ):
        assert watched(model, x, y, data, **options) == [80, 80]
    assert watched(model, x, y, (x, y), batch_size=3, steps=1) == [30, 30]


def test_endless_and_empty_data_is_refused_before_training():
    x, y = fresh_rng().normal(size=(2, 8, 5, 6)).astype("float32")
    model = dense_model()
    before = model.get_weights()
    for data, message in (
        (tf.data.Dataset.from_tensors((x, y)).repeat(), "have an end"),
        (tf.data.Dataset.from_tensors((x, y)).take(0), "have at least one"),
        (iter([]), "have at least one"),
        (None, "Received: no inputs"),
        (["text"], "Received: texts"),
    ):
        with pytest.raises(ValueError, match=rf"`data` must.*{message}"):
            watched(model, x, y, data)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.slow
def test_texts_are_preprocessed_by_the_task():
    task = classifier()
    texts, labels = TEXTS[:8], np.array([0, 1] * 4)
    expected = 2 * int(np.sum(task.preprocessor(texts)["padding_mask"]))
    for data in (texts, (texts, labels)):
        assert watched(task, texts, labels, data) == [expected] * 2


def test_a_missing_tensorboard_is_named_before_training(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        MemoryUsageMonitor([], tensorboard_dir=tmp_path)
