"""Padding reads nothing, however its mask comes to a memory."""

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from keras_pkm.layers import MemoryBlock
from keras_pkm.layers import NGramMemory
from keras_pkm.layers import PKMTransformerEncoder
from keras_pkm.layers import ProductKeyMemory
from tests.any_backbone.tiny_families import make_plain

IDS = np.array([[3, 4, 5, 0, 0], [6, 7, 0, 0, 0]])
MASK = IDS > 0
MEMORY = {"num_sub_keys": 8, "num_heads": 2, "top_k": 4, "key_dim": 8}


@pytest.fixture
def embedded():
    """With Keras' mask."""
    keras.utils.set_random_seed(0)
    return keras.layers.Embedding(10, 16, mask_zero=True)(tf.constant(IDS))


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
@pytest.mark.parametrize("kind", ["memory", "block"])
def test_keras_mask_beside_token_ids(kind, policy, embedded):
    layer = NGramMemory(50, dtype=policy)
    if kind == "block":
        passes_masks = keras.layers.LayerNormalization(dtype=policy)
        layer = MemoryBlock(passes_masks, layer)
    _, (_, weights) = layer(
        embedded, token_ids=tf.constant(IDS), return_memory_access=True
    )
    # No n-gram ends at the first token.
    reads = np.sum(weights, (-2, -1)) > 0
    np.testing.assert_array_equal(reads[:, 1:], MASK[:, 1:])


def test_keras_mask_beside_an_attention_mask(embedded):
    layer = PKMTransformerEncoder(16, 2, block="resm", memory=MEMORY)
    attention_mask = tf.ones((2, 5, 5), "int32")
    _, (_, weights) = layer(
        embedded, attention_mask=attention_mask, return_memory_access=True
    )
    reads = np.sum(weights, (-2, -1)) > 0
    np.testing.assert_array_equal(reads, MASK)


def test_a_mask_whose_length_is_not_known(embedded):
    encoder = keras_hub.layers.TransformerEncoder(16, 2)
    memory = ProductKeyMemory(**MEMORY, query_normalization="batch")
    block = MemoryBlock(encoder, memory)
    x = tf.constant(np.array(embedded))

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, 5, 16)),
            tf.TensorSpec((None, None), "bool"),
        ]
    )
    def read(x, mask):
        _, (_, weights) = block(x, padding_mask=mask, return_memory_access=True)
        return weights

    reads = np.sum(read(x, tf.constant(MASK)), (-2, -1)) > 0
    np.testing.assert_array_equal(reads, MASK)


def test_an_attention_mask_of_tokens():
    """ESM's blocks get no `padding_mask`."""
    plain = keras_hub.models.ESMBackbone(
        vocabulary_size=10,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        pad_token_id=0,
    )
    model = keras_pkm.models.add_memory(plain, (1,), MEMORY)
    probe = keras.Model(model.inputs, model.memory_outputs)
    (_, weights) = probe({"token_ids": IDS})[1]
    reads = np.sum(weights, (-2, -1)) > 0
    np.testing.assert_array_equal(reads, MASK)
    usage = keras_pkm.models.MemoryProbe(model).measure({"token_ids": IDS})
    assert usage[1]["top1_reads"] == 2 * MASK.sum()


def test_padding_is_no_part_of_an_n_gram():
    """So that a text on the left and one on the right are the same."""
    memory = NGramMemory(50, values_initializer="normal")
    model = keras_pkm.models.add_memory(make_plain("Llama"), (1,), memory)
    text = np.array([[3, 4, 5]])
    outputs = []
    for before, after in ((0, 2), (2, 0)):
        around = [[0, 0], [before, after]]
        ids, mask = np.pad(text, around), np.pad(np.ones_like(text), around)
        found = model({"token_ids": ids, "padding_mask": mask})
        outputs.append(np.array(found)[mask > 0])
    # Llama's positions are relative.
    np.testing.assert_allclose(*outputs, atol=1e-5)


@pytest.mark.parametrize("build", ["from_config", "clone"])
@pytest.mark.parametrize("kind", ["memory", "encoder", "block"])
def test_a_frozen_layer_remains_frozen(build, kind):
    if kind == "memory":
        layer = ProductKeyMemory(**MEMORY, trainable=False)
    elif kind == "encoder":
        layer = PKMTransformerEncoder(
            32, 2, block="resm", memory=MEMORY, trainable=False
        )
    else:
        plain = keras_hub.layers.TransformerEncoder(32, 2)
        layer = MemoryBlock(plain, MEMORY, trainable=False)
    shape = (16,) if kind == "memory" else (3, 16)
    model = keras.Sequential([keras.Input(shape), layer])
    assert model.trainable_weights == []
    if build == "clone":
        model = keras.models.clone_model(model)
    else:
        model = keras.Sequential.from_config(model.get_config())
    assert model.trainable_weights == []
    x = np.random.default_rng(0).normal(size=(8, *shape))
    model(x)
    assert model.weights and model.trainable_weights == []
    before = model.get_weights()
    model(x, training=True)
    for old, new in zip(before, model.get_weights()):
        np.testing.assert_array_equal(old, new)
