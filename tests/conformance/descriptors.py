"""The table: how each public layer and model is built, at a tiny size."""

import dataclasses
import functools
from collections.abc import Callable

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from keras_pkm.layers.memories import memories
from tests.kinds import KINDS

BATCH, LENGTH, WIDTH = 4, 5, 8
MEMORY = {"num_sub_keys": 4, "num_heads": 2, "top_k": 2, "key_dim": 4}
#: With values other than zero where a memory is added to a model, too.
FILLED = {**MEMORY, "values_initializer": "glorot_normal"}
SIZES = {
    "vocabulary_size": 20,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": WIDTH,
    "intermediate_dim": 8,
    "max_sequence_length": 6,
    "dropout": 0.0,
}
FAMILIES = ("Bert", "DistilBert", "Roberta")
#: Kinds whose train steps and exports are traced, too.
IN_DEPTH_KINDS = ("gate", "gated n-grams with tags")


@dataclasses.dataclass(frozen=True)
class Layer:
    """One line of the table of layers.

    Attributes:
        make: Function of keyword arguments, as `dtype`, that returns it.
        has_memory: Whether it has a product-key memory.
        shape: The shape of its inputs.
    """

    make: Callable
    has_memory: bool = True
    shape: tuple = (BATCH, LENGTH, WIDTH)


def _block_with_memory(**kwargs):
    block = keras_hub.layers.TransformerEncoder(8, 2, **kwargs)
    block.build((BATCH, LENGTH, WIDTH))
    return keras_pkm.layers.MemoryBlock(block, FILLED)


LAYERS = {
    "MaskedBatchNormalization": Layer(
        keras_pkm.layers.MaskedBatchNormalization,
        has_memory=False,
        shape=(BATCH * LENGTH, WIDTH),
    ),
    "MemoryBlock": Layer(_block_with_memory),
    "PKMTransformerEncoder": Layer(
        functools.partial(
            keras_pkm.layers.PKMTransformerEncoder,
            8,
            2,
            block="resm",
            memory=MEMORY,
        ),
    ),
    "ProductKeyMemory": Layer(
        functools.partial(keras_pkm.layers.ProductKeyMemory, **MEMORY)
    ),
}


@dataclasses.dataclass(frozen=True)
class Model:
    """One line of the table of models.

    Attributes:
        make: Function of a dtype policy that returns it.
        labels: What it is trained to give.
        loss: What `compile` takes.
        in_depth: Whether it also takes the tests that last for seconds, which
            trace train steps and SavedModels. The others share the code that
            could fail there with these models or with the layers.
    """

    make: Callable
    labels: Callable
    loss: object = "auto"
    in_depth: bool = False


def make_backbone(family, dtype=None, **kwargs):
    """An encoder with a memory instead of its feed-forward network."""
    memory = {"memory_layers": (1,), "memory": MEMORY, "memory_block": "pkm"}
    memory |= {name: kwargs.pop(name) for name in memory if name in kwargs}
    cls = getattr(keras_hub.models, f"{family}Backbone")
    plain = cls(**{**SIZES, **kwargs}, dtype=dtype)
    return keras_pkm.models.add_memory(plain, **memory)


def _task(name, family, dtype=None, **kwargs):
    cls = getattr(keras_pkm.models, name)
    return cls(make_backbone(family, dtype), **kwargs)


def _gpt2(dtype=None, kind=None):
    sizes = {"hidden_dim": WIDTH, "intermediate_dim": 8, "dropout": 0.0}
    plain = keras_hub.models.GPT2Backbone(20, 1, 2, **sizes, dtype=dtype)
    memory = KINDS[kind]() if kind else FILLED
    return keras_pkm.models.add_memory(plain, (1,), memory)


def _bert(dtype=None, kind=None, num_layers=1, **options):
    plain = keras_hub.models.BertBackbone(
        **{**SIZES, "num_layers": num_layers}, dtype=dtype
    )
    layers = range(1, num_layers + 1)
    model = keras_pkm.models.add_memory(
        plain, layers, KINDS[kind](), "resm", **options
    )
    for memory in memories(model).values():
        if getattr(memory, "tags", False):
            for token_id in range(0, 20, 2):
                memory.claim([token_id])
    return model


def _of_backbone(model):
    rng = np.random.default_rng(2)
    return keras.tree.map_structure(
        lambda output: rng.normal(
            size=[size or n for size, n in zip(output.shape, (BATCH, LENGTH))]
            + list(output.shape[2:])
        ).astype("float32"),
        model.output,
    )


def _tokens(model):
    return np.array([[3, 7], [1, 19], [4, 4], [0, 2]])


def _classes(model):
    return np.array([0, 2, 1, 2])


def _spans(model):
    return {"start": np.array([0, 1, 2, 0]), "end": np.array([1, 1, 3, 1])}


def _model_table():
    table = {}
    for family in FAMILIES:
        table[f"Memory{family}Backbone"] = Model(
            functools.partial(make_backbone, family),
            _of_backbone,
            loss="mse",
        )
        name = f"Memory{family}MaskedLM"
        table[name] = Model(
            functools.partial(_task, name, family),
            _tokens,
            in_depth=family == "Roberta",
        )
        name = f"Memory{family}TextClassifier"
        table[name] = Model(
            functools.partial(_task, name, family, num_classes=3, dropout=0.0),
            _classes,
            in_depth=family == "Bert",
        )
        name = f"Memory{family}QuestionAnswerer"
        table[name] = Model(functools.partial(_task, name, family), _spans)
    name = "QuestionAnswerer"
    table[name] = Model(functools.partial(_task, name, "DistilBert"), _spans)
    table["MemoryBackbone"] = Model(_gpt2, _of_backbone, loss="mse")
    for kind in KINDS:
        make = functools.partial(_bert, kind=kind)
        table[f"MemoryBertBackbone with {kind}"] = Model(
            make, _of_backbone, loss="mse", in_depth=kind in IN_DEPTH_KINDS
        )
    return table


MODELS = _model_table()
TASKS = [name for name in MODELS if "Backbone" not in name]
IN_DEPTH = [*LAYERS, *(name for name in MODELS if MODELS[name].in_depth)]
#: All layers and models; those that are not in depth are slow.
EVERYTHING = [
    name if name in IN_DEPTH else pytest.param(name, marks=pytest.mark.slow)
    for name in (*LAYERS, *MODELS)
]


def randomize(layer):
    """Gives all weights values as after training: no zeros, no ones."""
    rng = np.random.default_rng(3)
    for weight in layer.weights:
        if weight.name == "tags":
            continue
        noise = rng.normal(0, 0.3, weight.shape)
        if weight.name in ("gamma", "moving_variance"):
            noise = np.exp(noise)
        weight.assign(noise.astype("float32"))


def make_layer(name, **kwargs):
    """A layer of the table, built, the same at each call."""
    keras.utils.set_random_seed(1)
    layer = LAYERS[name].make(**kwargs)
    layer.build(LAYERS[name].shape)
    randomize(layer)
    return layer


def make_model(name, dtype=None):
    """A model of the table, or one around a layer, the same at each call."""
    keras.utils.set_random_seed(1)
    if name in LAYERS:
        return _model_around(name, dtype)
    model = MODELS[name].make(dtype)
    randomize(model)
    return model


def _model_around(name, dtype):
    """Dense, the layer, dense."""
    inputs = keras.Input(LAYERS[name].shape[1:])
    x = keras.layers.Dense(WIDTH, use_bias=False, dtype=dtype)(inputs)
    x = LAYERS[name].make(dtype=dtype)(x)
    model = keras.Model(inputs, keras.layers.Dense(3, dtype=dtype)(x))
    randomize(model)
    return model


@functools.cache
def built(name):
    """The same model for all tests that only call or save it."""
    return make_model(name)


def inputs_of(name):
    """A batch of inputs, of a layer or model of the table."""
    rng = np.random.default_rng(4)
    if name in LAYERS:
        return tf.constant(rng.normal(size=LAYERS[name].shape), "float32")
    lengths = np.array([[5], [3], [4], [2]])
    features = {
        "token_ids": rng.integers(0, 20, (BATCH, LENGTH)),
        "segment_ids": np.tile([[0, 0, 1, 1, 1]], (BATCH, 1)),
        "padding_mask": np.arange(LENGTH) < lengths,
        "mask_positions": np.array([[0, 1], [2, 1], [0, 3], [1, 0]]),
    }
    return {
        key: tf.constant(features[key], "int32") for key in built(name).input
    }


def labels_of(name):
    """The labels of that batch."""
    if name in LAYERS:
        shape = (*LAYERS[name].shape[:-1], 3)
        return np.random.default_rng(5).normal(size=shape).astype("float32")
    return MODELS[name].labels(built(name))
