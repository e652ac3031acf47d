"""Memories in models that are not ours: found, frozen, measured, watched."""

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.callbacks import MemoryUsageMonitor
from keras_pkm.layers import ProductKeyMemory
from keras_pkm.layers.memories import memories
from keras_pkm.metrics import MemoryUsage
from keras_pkm.metrics.numbers import result_numbers
from keras_pkm.models import MemoryProbe
from keras_pkm.models import freeze_memory
from keras_pkm.optimizers import PKMAdam
from tests.contracts import fixed_rng
from tests.contracts import fresh_rng
from tests.models.tiny import MEMORY
from tests.models.tiny import SIZES
from tests.models.tiny import tiny_backbone
from tests.models.tiny import tiny_masked_lm


class Tower(keras.Model):
    """A subclassed model, with one memory inside of another layer."""

    def __init__(self):
        super().__init__()
        self.first = ProductKeyMemory(**MEMORY)
        self.block = keras.Sequential(
            [keras.layers.Dense(6), ProductKeyMemory(**MEMORY)]
        )
        self.head = keras.layers.Dense(2)

    def call(self, x, training=False):
        x = x + self.first(x, training=training)
        return self.head(x + self.block(x, training=training))


@pytest.fixture
def inputs():
    return fresh_rng().normal(size=(8, 5, 6)).astype("float32")


@pytest.fixture
def tower(inputs):
    model = Tower()
    model(inputs)
    return model


def test_numbers_are_those_of_the_layers_of_our_backbones():
    backbone = tiny_backbone(memory_layers=(1, 3))
    assert list(memories(backbone)) == [1, 3]
    assert list(memories(tiny_masked_lm())) == [1, 3]
    assert memories(keras_hub.models.BertBackbone(**SIZES)) == {}


def test_probe_counts_what_each_memory_reads(tower, inputs):
    assert memories(tower) == {1: tower.first, 2: tower.block.layers[1]}
    data = tf.data.Dataset.from_tensor_slices((inputs, inputs)).batch(4)
    usage = MemoryProbe(tower).measure(data)
    for number, x in (
        (1, inputs),
        (2, tower.block.layers[0](inputs + tower.first(inputs))),
    ):
        memory = memories(tower)[number]
        _, access = memory(x, return_memory_access=True)
        metric = MemoryUsage(memory.num_slots)
        metric.update_state(*access)
        expected = result_numbers(metric)
        assert usage[number]["top1_reads"] == 8 * 5 * 2
        for name, value in expected.items():
            assert usage[number][name] == pytest.approx(value, rel=1e-5)


def test_probe_of_a_task_equals_that_of_its_backbone():
    task = tiny_masked_lm()
    rng = fixed_rng()
    x = {
        "token_ids": rng.integers(0, 100, (8, 12)),
        "segment_ids": np.zeros((8, 12), "int32"),
        "padding_mask": (np.arange(12) < rng.integers(4, 12, (8, 1))) * 1,
        "mask_positions": rng.integers(0, 4, (8, 3)),
    }
    data = tf.data.Dataset.from_tensors(x)
    expected = MemoryProbe(task.backbone).measure(data)
    actual = MemoryProbe(task).measure(data)
    assert actual.keys() == expected.keys()
    for number, figures in expected.items():
        assert actual[number] == pytest.approx(figures)


@pytest.mark.slow
def test_monitor_and_freezing(tower, inputs):
    freeze_memory(tower, ("values",))
    tower.compile(PKMAdam(), "mse", run_eagerly=True)
    tables = [m.table.values.numpy() for m in memories(tower).values()]
    history = tower.fit(
        inputs,
        np.zeros((8, 5, 2)),
        callbacks=[MemoryUsageMonitor(tf.data.Dataset.from_tensors(inputs))],
        shuffle=False,
        verbose=0,
    ).history
    assert history["memory_2_top1_reads"] == [80]
    for old, memory in zip(tables, memories(tower).values()):
        np.testing.assert_array_equal(memory.table.values, old)


def test_models_without_memories_and_unbuilt_ones():
    plain = keras_hub.models.BertBackbone(**SIZES)
    with pytest.raises(ValueError, match="a memory to measure.*`BertBackbone`"):
        MemoryProbe(plain)
    with pytest.raises(ValueError, match="must be built, so"):
        freeze_memory(Tower())


@pytest.mark.slow
def test_batches_are_divided_among_replicas_whatever_holds_them(
    inputs, mirrored
):
    with mirrored.scope():
        tower = Tower()
        tower(inputs)
    plain = Tower()
    plain(inputs)
    plain.set_weights(tower.get_weights())
    # The second cannot be divided evenly.
    batches = [(inputs,), (inputs[:3],)]
    expected = [each[1] for each in MemoryProbe(plain).count_each(batches)]
    probe = MemoryProbe(tower)
    for data in (batches, [(*batch, None) for batch in batches]):
        counts = [each[1] for each in probe.count_each(data)]
        for one, other in zip(counts, expected, strict=True):
            np.testing.assert_array_equal(one["reads"], other["reads"])
    with mirrored.scope(), pytest.raises(ValueError, match="`model` must be"):
        MemoryProbe(plain)
