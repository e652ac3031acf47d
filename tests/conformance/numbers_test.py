"""Numbers as arguments: those of numpy are taken, what is none is refused."""

import json

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm import callbacks
from keras_pkm import layers
from keras_pkm import metrics
from keras_pkm import models
from keras_pkm import ops
from keras_pkm import optimizers
from keras_pkm import teaching
from tests.conformance.descriptors import MEMORY
from tests.conformance.descriptors import SIZES

NO_INTEGERS = [True, np.True_, float("nan"), -1, 1.5, "8", None]
NO_FLOATS = [True, np.True_, float("nan"), float("inf"), -1.0, "0.1"]


def memory(**kwargs):
    return layers.ProductKeyMemory(**{**MEMORY, **kwargs})


def encoder(**kwargs):
    sizes = {"intermediate_dim": 8, "num_heads": 2, "block": "resm"}
    return layers.PKMTransformerEncoder(**{**sizes, **kwargs})


def backbone(memory=MEMORY, memory_layers=(1,), **kwargs):
    plain = keras_hub.models.BertBackbone(**SIZES)
    return models.MemoryBackbone(plain, memory_layers, memory, "resm", **kwargs)


def warmup(**kwargs):
    steps = {"peak": 1e-3, "warmup_steps": 3, "total_steps": 9}
    return optimizers.LinearWarmup(**{**steps, **kwargs})


def loss_scale(**kwargs):
    return optimizers.LossScaleOptimizer(optimizers.PKMAdam(), **kwargs)


def with_memory(**kwargs):
    sizes = {"hidden_dim": 8, "intermediate_dim": 8}
    plain = keras_hub.models.GPT2Backbone(20, 2, 2, **sizes)
    return models.add_memory(plain, (1,), MEMORY, **kwargs)


def monitor(**kwargs):
    data = tf.data.Dataset.from_tensors(np.ones((2, 8)))
    return callbacks.MemoryUsageMonitor(data, **kwargs)


def checkpoint(**kwargs):
    return callbacks.TrainingCheckpoint("unused", **kwargs)


def teacher(**kwargs):
    return teaching.MemoryTeacher(a_model(), **kwargs)


def a_model():
    model = keras.Sequential([keras.Input((8,)), memory()])
    model.compile(loss="mse")
    return model


def importance(**kwargs):
    return teaching.SlotImportance(**kwargs, document_frequencies={1: [1] * 16})


def search(**kwargs):
    queries, sub_keys = tf.ones((2, 1, 4)), tf.ones((1, 2, 5, 2))
    return ops.product_key_search(queries, sub_keys, **kwargs)


def best(**kwargs):
    return importance(num_batches=2).best({1: np.arange(16)}, **kwargs)


def teach(**kwargs):
    batch = np.ones((2, 8)), np.ones((2, 8))
    return teacher().teach([batch], **kwargs)


INTEGERS = [
    *((memory, name, value) for name, value in MEMORY.items()),
    (memory, "value_dim", 3),
    (encoder, "intermediate_dim", 8),
    (encoder, "num_heads", 2),
    (warmup, "warmup_steps", 3),
    (warmup, "total_steps", 9),
    (loss_scale, "dynamic_growth_steps", 3),
    (metrics.MemoryUsage, "num_slots", 4),
    (metrics.MemoryStaleness, "num_slots", 4),
    (metrics.ClassMemoryUsage, "num_slots", 4),
    (metrics.MatthewsCorrelation, "num_classes", 3),
    (callbacks.SkippedSteps, "limit", 3),
    (checkpoint, "every", 3),
    (checkpoint, "keep", 3),
    (monitor, "every", 3),
    (importance, "num_batches", 3),
    (search, "top_k", 3),
    (best, "count", 3),
    (teach, "steps", 1),
]
FLOATS = [
    (memory, "query_dropout", 0.5),
    (memory, "value_dropout", 0.5),
    (layers.MaskedBatchNormalization, "momentum", 0.5),
    (layers.MaskedBatchNormalization, "epsilon", 0.5),
    (encoder, "dropout", 0.5),
    (encoder, "layer_norm_epsilon", 0.5),
    (backbone, "normalization_epsilon", 0.5),
    (warmup, "peak", 0.5),
    (loss_scale, "initial_scale", 0.5),
    (metrics.MatthewsCorrelation, "threshold", 0.5),
    (teacher, "learning_rate", 0.5),
    *(
        (optimizers.PKMAdam, name, 0.5)
        for name in (
            "learning_rate",
            "memory_learning_rate",
            "beta_1",
            "beta_2",
            "epsilon",
            "weight_decay",
            "clipnorm",
            "clipvalue",
            "global_clipnorm",
        )
    ),
]
MAY_BE_NONE = {"value_dim", "limit", "every"}
MAY_BE_NEGATIVE = {"initial_scale", "threshold"}


def config_of(thing, name=None):
    """The config through JSON, which refuses numbers of numpy.

    Others have the number as an attribute, or are what was computed with it.
    """
    if hasattr(thing, "get_config"):
        return json.loads(json.dumps(thing.get_config()))
    for attribute in (name, f"_{name}"):
        if hasattr(thing, attribute):
            number = getattr(thing, attribute)
            return type(number), number
    if isinstance(thing, teaching.MemoryTeacher):
        return float(thing._optimizer.learning_rate)
    return keras.tree.map_structure(lambda each: np.array(each).tolist(), thing)


def check_numbers(make, name, value, others):
    def config(number):
        keras.backend.clear_session(free_memory=False)
        return config_of(make(**{name: number}), name)

    expected = config(value)
    for other in others:
        assert config(other) == expected


@pytest.mark.parametrize("make, name, value", INTEGERS)
def test_integers(make, name, value):
    check_numbers(
        make, name, value, [np.int64(value), np.uint8(value), np.array(value)]
    )
    for wrong in NO_INTEGERS:
        if wrong is None and name in MAY_BE_NONE:
            continue
        with pytest.raises(ValueError, match=f"`{name}` must be .*{name}="):
            make(**{name: wrong})


@pytest.mark.parametrize("make, name, value", FLOATS)
def test_floats(make, name, value):
    others = [np.float16(value), np.float32(value), np.array(value)]
    check_numbers(make, name, value, others)
    for wrong in NO_FLOATS:
        if wrong == -1 and make is not loss_scale and name in MAY_BE_NEGATIVE:
            continue
        if name == "memory_learning_rate" and isinstance(wrong, str):
            wrong = "0.1y"
        with pytest.raises(ValueError, match=f"`{name}` must be .*{name}="):
            make(**{name: wrong})


@pytest.mark.parametrize("name", MEMORY)
def test_memories_of_backbones(name):
    numbers = {**MEMORY, name: np.int64(MEMORY[name])}
    assert config_of(backbone(memory=numbers))["memory"] == MEMORY
    plain = keras_hub.models.GPT2Backbone(
        20, 1, 2, hidden_dim=8, intermediate_dim=8
    )
    assert (
        config_of(models.add_memory(plain, (1,), numbers))["memory"] == MEMORY
    )


@pytest.mark.parametrize(
    "numbers", [np.array([1]), [np.int64(1)], range(1, 2), np.uint8([1])]
)
def test_memory_layers(numbers):
    assert config_of(backbone(memory_layers=numbers))["memory_layers"] == [1]


@pytest.mark.parametrize(
    "wrong", [1, np.int64(1), (True,), (float("nan"),), (1.5,), ("1",), (2,)]
)
def test_no_memory_layers(wrong):
    with pytest.raises(ValueError, match="`memory_layers` must be.*memory_la"):
        backbone(memory_layers=wrong)


@pytest.mark.slow
def test_a_file_of_a_model_made_with_numbers_of_numpy(tmp_path):
    inputs = keras.Input((8,))
    outputs = memory(num_sub_keys=np.int64(4), value_dropout=np.float32(0.5))(
        inputs
    )
    model = keras.Model(inputs, outputs)
    optimizer = optimizers.PKMAdam(
        warmup(peak=np.float32(0.5), total_steps=np.int64(9)),
        np.float32(0.5),
        weight_decay=np.array(0.5),
    )
    model.compile(optimizer, "mse")
    model.fit(np.ones((2, 8)), np.ones((2, 8)), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.get_config() == optimizer.get_config()
    assert loaded.optimizer.memory_learning_rate == 0.5
