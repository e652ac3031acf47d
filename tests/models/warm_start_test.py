"""What warm starts refuse, and what a model keeps that gets another memory."""

import keras
import keras_hub
import numpy as np
import pytest

import keras_pkm
from keras_pkm.layers import NGramMemory
from keras_pkm.models import copy_matching_weights
from tests.any_backbone.tiny_families import MEMORY
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_plain
from tests.any_backbone.tiny_families import outputs_of


def dense():
    model = keras.Sequential(name="m")
    model.add(keras.Input((4,)))
    model.add(keras.layers.Dense(3, name="dense"))
    return model


@pytest.mark.parametrize("what", ["lora", "int8"])
@pytest.mark.parametrize("is_source", [False, True])
def test_kernels_that_are_not_all(what, is_source):
    special, plain = dense(), dense()
    if what == "lora":
        special.layers[0].enable_lora(2)
    else:
        special.layers[0].quantize("int8")
    pair = (special, plain) if is_source else (plain, special)
    before = plain.get_weights()
    with pytest.raises(ValueError, match="must have plain weights.*'dense'"):
        copy_matching_weights(*pair)
    for old, new in zip(before, plain.get_weights()):
        np.testing.assert_array_equal(old, new)


def test_memories_with_other_addresses():
    models = []
    for seed in (0, 1):
        ids, x = keras.Input((5,), dtype="int32"), keras.Input((5, 8))
        memory = NGramMemory(50, hash_seed=seed, name="memory")
        outputs = memory(x, token_ids=ids)
        models.append(keras.Model((ids, x), outputs, name="m"))
    with pytest.raises(ValueError, match="the same addresses.*hash_seed"):
        copy_matching_weights(*models)


def test_another_memory_keeps_activation_and_epsilon(tmp_path):
    plain = make_plain("Bert")
    first = keras_pkm.models.MemoryBackbone(
        plain,
        (1,),
        MEMORY,
        feedforward_activation="gelu_approximate",
        normalization_epsilon=1e-2,
    )
    second = keras_pkm.models.add_memory(first.plain_backbone, (2,), MEMORY)
    inputs = inputs_of(plain)
    second.save_to_preset(str(tmp_path / "second"))
    again = keras_hub.models.Backbone.from_preset(str(tmp_path / "second"))
    for a, b in zip(outputs_of(second, inputs), outputs_of(again, inputs)):
        np.testing.assert_array_equal(a, b)


def test_a_task_keeps_its_sampler():
    plain = keras_hub.models.GPT2CausalLM(make_plain("GPT2"), None)
    plain.compile(sampler="greedy")
    model = keras_pkm.models.add_memory(plain, (1,), MEMORY)
    assert model.sampler is plain.sampler
