"""The paper's blocks in encoders of KerasHub."""

import keras
import keras_hub
import numpy as np
import pytest

import keras_pkm
from tests.any_backbone.tiny_families import FILLED
from tests.any_backbone.tiny_families import MEMORY
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_plain
from tests.any_backbone.tiny_families import outputs_of
from tests.contracts import to_numpy

SIZES = (50, 2, 2, 16, 32)
FAMILIES = ["Electra", pytest.param("XLMRoberta", marks=pytest.mark.slow)]


def encoder(block, name):
    return keras_pkm.layers.PKMTransformerEncoder(
        32,
        2,
        block,
        MEMORY,
        activation=keras_hub.models.BertBackbone(*SIZES)
        .transformer_layers[0]
        .activation,
        layer_norm_epsilon=1e-12,
        name=name,
    )


@pytest.mark.parametrize("block", ["resm", "pkm"])
def test_equals_a_layer_of_ours(block):
    """The block of a BERT, with the same weights."""
    plain = keras_hub.models.BertBackbone(*SIZES, dropout=0.0)
    model = keras_pkm.models.add_memory(plain, (2,), FILLED, memory_block=block)
    found = model.transformer_layers[1]
    expected = encoder(block, found.name)
    x = keras.random.normal((2, 8, 16))
    expected.build(x.shape)
    theirs = {each.path.split("/", 1)[1]: each for each in found.weights}
    assert len(theirs) == len(found.weights) == len(expected.weights)
    for weight in expected.weights:
        weight.assign(theirs[weight.path.split("/", 1)[1]])
    mask = np.ones((2, 8), "int32")
    for training in (False, True):
        np.testing.assert_array_equal(
            to_numpy(found(x, padding_mask=mask, training=training)),
            to_numpy(expected(x, padding_mask=mask, training=training)),
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_starts_as_the_plain_model(family):
    plain = make_plain(family)
    model = keras_pkm.models.add_memory(
        plain, (1, 2), MEMORY, memory_block="resm"
    )
    inputs = inputs_of(plain)
    plain_outputs = outputs_of(plain, inputs)
    for a, b in zip(outputs_of(model, inputs), plain_outputs):
        np.testing.assert_array_equal(a, b)
    for layer in model.transformer_layers:
        values = layer.memory.table.values
        values.assign(keras.random.normal(values.shape))
    changed = outputs_of(model, inputs)
    assert any((a != b).any() for a, b in zip(changed, plain_outputs))
    # The plain backbone's weights are the model's own.
    shared = {id(weight) for weight in plain.weights}
    assert shared <= {id(weight) for weight in model.weights}


@pytest.mark.parametrize("block", ["resm", "pkm"])
def test_presets(block, tmp_path):
    model = keras_pkm.models.add_memory(
        make_plain("Electra"), (2,), FILLED, memory_block=block
    )
    model.save_to_preset(str(tmp_path))
    loaded = keras_hub.models.Backbone.from_preset(str(tmp_path))
    assert loaded.memory_block == block
    inputs = inputs_of(model)
    for a, b in zip(outputs_of(model, inputs), outputs_of(loaded, inputs)):
        np.testing.assert_array_equal(a, b)
    assert loaded.memory_outputs.keys() == {2}


def test_lora_reaches_the_shared_layers():
    model = keras_pkm.models.add_memory(
        make_plain("Electra"), (2,), MEMORY, memory_block="resm"
    )
    model.enable_lora(2)
    lora = [
        each.path
        for each in model.trainable_variables
        if "lora_kernel" in each.path
    ]
    # Queries and values of both blocks have two matrices each.
    assert len(lora) == 8


@pytest.mark.parametrize(
    "family, arguments, message",
    [
        ("GPT2", {"memory_block": "resm"}, 'Use `memory_block="serial"`'),
        ("Electra", {"memory_block": "all"}, '"serial" or "resm" or "pkm"'),
    ],
)
def test_mistakes(family, arguments, message):
    with pytest.raises(ValueError, match=message):
        keras_pkm.models.add_memory(
            make_plain(family), (1,), MEMORY, **arguments
        )


@pytest.mark.parametrize("memory_block", ["resm", "pkm", "serial"])
def test_a_memory_beside_frozen_blocks_is_trained(memory_block):
    plain = make_plain("Bert")
    plain.trainable = False
    model = keras_pkm.models.add_memory(plain, (1,), MEMORY, memory_block)
    assert any("sub_keys" in each.path for each in model.trainable_variables)
    assert not plain.trainable_variables


def test_a_memory_beside_blocks_with_lora():
    plain = make_plain("Bert")
    plain.enable_lora(2)
    count = len(plain.trainable_variables)
    model = keras_pkm.models.add_memory(plain, (1,), MEMORY, "resm")
    assert len(plain.trainable_variables) == count
    assert len(model.trainable_variables) > count
