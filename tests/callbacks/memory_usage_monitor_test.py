import csv

import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.callbacks import MemoryUsageMonitor
from keras_pkm.models import MemoryProbe
from keras_pkm.optimizers import PKMAdam
from tests.contracts import fresh_rng
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_masked_lm


@pytest.fixture
def held_out():
    batch = masked_batch(fresh_rng(), batch=8)
    return tf.data.Dataset.from_tensor_slices(batch).batch(4)


@pytest.fixture
def task():
    task = tiny_masked_lm()
    task.backbone.pooled_dense.trainable = False
    task.compile(PKMAdam())
    return task


def fit(task, callback, epochs=2, steps=3):
    batch = masked_batch(fresh_rng(), batch=4)
    data = tf.data.Dataset.from_tensors(batch).repeat(steps)
    return task.fit(
        data, epochs=epochs, callbacks=[callback], shuffle=False, verbose=0
    )


def test_measures_into_logs_csv_and_tensorboard(task, held_out, tmp_path):
    monitor = MemoryUsageMonitor(
        held_out,
        every=2,
        csv_path=tmp_path / "usage.csv",
        tensorboard_dir=tmp_path / "board",
    )
    history = fit(task, monitor).history
    expected = MemoryProbe(task.backbone).measure(held_out)
    assert monitor.usage == expected
    for number, figures in expected.items():
        for name, value in figures.items():
            assert history[f"memory_{number}_{name}"][-1] == value
    with open(tmp_path / "usage.csv") as file:
        rows = list(csv.DictReader(file))
    # Steps 2, 4, 6, and 3, the end of the first epoch; once each.
    assert [(row["step"], row["layer"]) for row in rows] == [
        (step, layer) for step in "2346" for layer in "13"
    ]
    assert float(rows[-1]["kl_u"]) == pytest.approx(expected[3]["kl_u"])
    (events,) = (tmp_path / "board").iterdir()
    steps = {
        event.step
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
        if value.tag == "memory_3_top1_mu"
    }
    assert steps == {2, 3, 4, 6}


def test_measuring_does_not_disturb_training(held_out):
    weights = []
    for callback in (MemoryUsageMonitor(held_out, every=1), None):
        tf.keras.utils.set_random_seed(3)
        task = tiny_masked_lm()
        task.backbone.pooled_dense.trainable = False
        task.compile(PKMAdam(1e-2))
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
    with pytest.raises(ValueError, match="has none"):
        fit(task, MemoryUsageMonitor(held_out))
