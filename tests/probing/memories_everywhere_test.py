"""Memories in a backbone and outside of it are all seen."""

import keras
import numpy as np

from keras_pkm.layers import ProductKeyMemory
from keras_pkm.layers.memories import memories
from keras_pkm.layers.memories import tables
from keras_pkm.models import MemoryProbe
from keras_pkm.models import freeze_except_memory
from keras_pkm.models import freeze_memory
from keras_pkm.ops.value_tables import is_table
from keras_pkm.teaching import MemoryTeacher
from tests.contracts import fixed_rng
from tests.models.tiny import MEMORY
from tests.models.tiny import features
from tests.models.tiny import tiny_backbone
from tests.slow_tier import slow_on_tensorflow


@keras.saving.register_keras_serializable("tests")
class Tagger(keras.Model):
    """A user's model: our backbone, one more memory, and a head."""

    def __init__(self):
        super().__init__()
        self.backbone = tiny_backbone()
        self.extra = ProductKeyMemory(**MEMORY)
        self.head = keras.layers.Dense(3)

    def call(self, inputs, training=None):
        x = self.backbone(inputs, training=training)["sequence_output"]
        return self.head(x + self.extra(x, training=training))


def make_tagger():
    model, inputs = Tagger(), features(fixed_rng())
    model(inputs)
    return model, inputs


def test_all_are_numbered_and_measured():
    model, inputs = make_tagger()
    inside = memories(model.backbone)
    after = len(model.backbone.transformer_layers) + 1
    assert memories(model) == {**inside, after: model.extra}
    assert len(tables(model)) == len(inside) + 1
    usage = MemoryProbe(model).measure(inputs)
    assert usage.keys() == memories(model).keys()
    assert all(figures["top1_reads"] > 0 for figures in usage.values())


@slow_on_tensorflow
def test_all_are_frozen_and_taught():
    model, inputs = make_tagger()
    freeze_memory(model, ("values",))
    assert not any(map(is_table, model.trainable_variables))
    freeze_except_memory(model)
    assert len(model.trainable_variables) == len(tables(model))
    labels = np.zeros(inputs["token_ids"].shape, "int32")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    teacher = MemoryTeacher(model, 0.1, loss=loss)
    teacher.teach([(inputs, labels)], steps=2)
    patch = teacher.make_patch()
    assert patch.memories.keys() == memories(model).keys()
    patch.revert(model)


def test_a_memory_in_several_blocks_has_one_number():
    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            memory = ProductKeyMemory(**MEMORY)
            self.transformer_layers = [
                keras.Sequential([memory]) for _ in range(2)
            ]

        def call(self, inputs):
            for block in self.transformer_layers:
                inputs = inputs + block(inputs)
            return inputs

    model, x = Twice(), fixed_rng().normal(size=(4, 8))
    model(x)
    assert list(memories(model)) == [1]
    (figures,) = MemoryProbe(model).measure(x).values()
    assert figures["top1_reads"] == 2 * 4 * MEMORY["num_heads"]


def test_a_probe_sees_low_rank_additions_that_come_later():
    dense = keras.layers.Dense(8)
    model = keras.Sequential([keras.Input((8,)), dense])
    model.add(ProductKeyMemory(**MEMORY))
    x = fixed_rng().normal(size=(64, 8))
    probe = MemoryProbe(model)
    before = probe.measure(x)
    dense.enable_lora(2)
    dense.lora_kernel_b.assign(np.full(dense.lora_kernel_b.shape, 50.0))
    assert probe.measure(x) == MemoryProbe(model).measure(x) != before
