import keras
import keras_hub
import numpy as np
import pytest

from keras_pkm.layers import NGramMemory
from keras_pkm.layers import ProductKeyMemory
from keras_pkm.layers.memories import memories
from keras_pkm.models import MemoryBertTextClassifier
from keras_pkm.models import add_memory
from keras_pkm.models import freeze_except_memory
from keras_pkm.models import freeze_memory
from keras_pkm.ops.value_tables import is_table
from keras_pkm.optimizers import PKMAdam
from keras_pkm.trainers.task_training import TaskTraining
from tests.contracts import fresh_rng
from tests.contracts import to_numpy
from tests.models.tiny import MEMORY
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import SIZES
from tests.models.tiny import features
from tests.models.tiny import tiny_backbone
from tests.slow_tier import slow_but

# The weights of each part; batch norm's moving statistics are weights, too.
PATHS = {
    "values": ("table/values",),
    "keys": ("sub_keys",),
    "queries": ("query_projection/", "query_normalization/"),
}


@pytest.mark.parametrize(
    "block, parts, eager",
    [
        ("resm", (), True),
        ("resm", ("values",), True),
        ("pkm", ("keys",), True),
        ("resm", ("queries",), True),
        ("pkm", ("values", "keys", "queries"), True),
        # A graph takes seconds to trace.
        pytest.param("resm", ("values",), False, marks=pytest.mark.slow),
    ],
)
def test_frozen_parts_stay_bit_for_bit(eager, parts, block):
    task = MemoryBertTextClassifier(
        tiny_backbone(memory_block=block, **ONE_LAYER), num_classes=2
    )
    freeze_memory(task.backbone, parts)
    # On JAX, an eager step of a whole model takes longer than compiling it.
    eager = eager and keras.backend.backend() != "jax"
    task.compile(PKMAdam(1e-2, 1e-1, weight_decay=0.1), run_eagerly=eager)
    rng = fresh_rng()
    memory = {w.path: w.numpy() for w in task.weights if "/memory/" in w.path}
    for _ in range(2):
        task.fit(features(rng), rng.integers(0, 2, 8), shuffle=False, verbose=0)
    frozen = [path for part in parts for path in PATHS[part]]
    for weight in task.weights:
        if weight.path in memory:
            same = np.array_equal(memory.pop(weight.path), weight)
            is_frozen = any(path in weight.path for path in frozen)
            # A bias before batch norm has no effect.
            if not weight.path.endswith("query_projection/bias"):
                assert same == is_frozen, weight.path
    assert not memory


@pytest.mark.parametrize(
    "memory",
    [
        {**MEMORY, "gate": True, "value_dim": 8},
        NGramMemory(50, gate="engram"),
    ],
    ids=["product keys", "n-grams"],
)
def test_a_frozen_memory_is_frozen_whole(memory):
    plain = keras_hub.models.BertBackbone(**SIZES)
    backbone = add_memory(plain, (1, 2), memory)
    freeze_memory(backbone)
    for each in memories(backbone).values():
        assert not each.trainable_weights
    freeze_memory(backbone, ("values",))
    assert each.trainable_weights


@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="an optimizer has all or none"
)
@pytest.mark.parametrize("is_task", slow_but(True, [False, True]))
def test_a_model_that_was_trained_is_frozen_in_its_next_fit(is_task):
    memory = ProductKeyMemory(8, top_k=4, key_dim=8)
    inner = model = keras.Sequential([keras.Input((16,)), memory])
    if is_task:
        # Parts of its backbone are frozen.
        model = Task(model.inputs, inner(model.inputs[0]))
    model.compile(PKMAdam(1e-2, 1e-1), "mse")
    x, y = fresh_rng().normal(size=(2, 8, 16)).astype("float32")
    model.fit(x, y, verbose=0)
    freeze_memory(inner, ("values", "keys"))
    before = [np.array(to_numpy(each)) for each in model.weights]
    model.fit(x, y, verbose=0)
    changed = {
        weight.name
        for old, weight in zip(before, model.weights, strict=True)
        if (old != to_numpy(weight)).any()
    }
    assert changed and not changed & {"values", "sub_keys"}


def test_freezing_again_replaces():
    backbone = tiny_backbone()
    everything = len(backbone.trainable_weights)
    freeze_memory(backbone)
    assert len(backbone.trainable_weights) == everything - 2 * 6
    freeze_memory(backbone, ("values",))
    assert len(backbone.trainable_weights) == everything - 2
    freeze_memory(backbone, ())
    assert len(backbone.trainable_weights) == everything


def test_wrong_parts_and_models():
    with pytest.raises(
        ValueError, match="'values', 'keys', 'queries'.*'value'"
    ):
        freeze_memory(tiny_backbone(), ("value",))
    with pytest.raises(ValueError, match="MemoryBertBackbone` without one"):
        freeze_memory(tiny_backbone(memory_layers=()))
    with pytest.raises(ValueError, match="a `BertBackbone` without one"):
        freeze_memory(keras_hub.models.BertBackbone(**SIZES))


class Around(keras.layers.Layer):
    """A user's layer, with a weight of its own beside a memory."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.memory = ProductKeyMemory(8, top_k=4, key_dim=8)
        self.norm = keras.layers.BatchNormalization()

    def build(self, shape):
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")
        self.memory.build(shape)
        self.norm.build(shape)

    def call(self, inputs):
        return self.norm(inputs + self.scale * self.memory(inputs))


def own_model():
    inner = keras.Sequential([keras.Input((16,)), Around()])
    inputs = keras.Input((16,))
    x = keras.layers.Dense(16)(inputs)
    return keras.Model(inputs, keras.layers.Dense(2)(inner(x)))


class Task(TaskTraining, keras.Model):
    """A model that trains as tasks do."""


def task():
    return MemoryBertTextClassifier(tiny_backbone(), num_classes=2)


@pytest.mark.parametrize("make", [own_model, task])
def test_all_but_the_values_stay_bit_for_bit(make):
    model = make()
    # As a user may have left it.
    model.layers[-1].trainable = False
    model.layers[-2].trainable = False
    freeze_except_memory(model)
    found = memories(model).values()
    assert {id(v) for v in model.trainable_variables} == {
        id(memory.table.values) for memory in found
    }
    before = {v.path: v.numpy() for v in model.weights}
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(PKMAdam(1e-2, 1e-1), loss=loss, run_eagerly=True)
    rng = fresh_rng()
    inputs = features(rng) if make is task else rng.normal(size=(8, 16))
    model.fit(inputs, rng.integers(0, 2, 8), shuffle=False, verbose=0)
    for variable in model.weights:
        changed = ~np.equal(before[variable.path], variable.numpy())
        if not is_table(variable):
            assert not changed.any(), variable.path
        else:
            assert 0 < changed.any(axis=1).mean() < 1
    assert all(
        not layer.trainable
        for layer in model._flatten_layers()
        if isinstance(layer, keras.layers.BatchNormalization)
    )
    model.trainable = False
    model.trainable = True
    assert any(v.name == "sub_keys" for v in model.trainable_variables)


def test_except_memory_says_what_is_wrong():
    with pytest.raises(ValueError, match="a `BertBackbone` without one"):
        freeze_except_memory(keras_hub.models.BertBackbone(**SIZES))
    with pytest.raises(ValueError, match="`model` must be built, so"):
        freeze_except_memory(
            keras.Sequential([ProductKeyMemory(8, top_k=4, key_dim=8)])
        )
