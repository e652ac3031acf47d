import keras
import keras_hub
import numpy as np
import pytest

import keras_pkm
from keras_pkm.layers import ProductKeyMemory
from keras_pkm.layers.memories import memories
from keras_pkm.models import adapt_memories
from keras_pkm.models import add_memory
from tests.any_backbone.tiny_families import MEMORY
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_plain
from tests.any_backbone.tiny_families import outputs_of
from tests.contracts import to_numpy
from tests.slow_tier import slow_on_tensorflow

BATCH_NORM = {**MEMORY, "query_normalization": "batch"}


def make_model(layers=(1, 2), memory=BATCH_NORM):
    task = keras_hub.models.GPT2CausalLM(make_plain("GPT2"), preprocessor=None)
    return add_memory(task, layers, memory)


def queries_of(model, inputs):
    """The queries of each memory before their normalization, by hand."""
    backbone = model.backbone
    found = {}
    x = backbone.embeddings_add(
        (
            backbone.token_embedding(inputs["token_ids"]),
            backbone.position_embedding(
                backbone.token_embedding(inputs["token_ids"])
            ),
        )
    )
    mask = np.asarray(inputs["padding_mask"], bool)
    for number, block in enumerate(backbone.transformer_layers, 1):
        plain = block.block
        y = plain(x, decoder_padding_mask=inputs["padding_mask"])
        queries = block.memory.query_projection(block.normalization(y))
        found[number] = to_numpy(queries).astype("float64")[mask]
        x = y
    return found


@slow_on_tensorflow
def test_statistics_are_those_of_all_tokens():
    model, plain = make_model(), make_plain("GPT2")
    inputs = inputs_of(model.backbone)
    before = outputs_of(model, inputs)
    queries = queries_of(model, inputs)
    # In batches whose means and numbers of tokens differ.
    adapt_memories(model, inputs, batch_size=1)
    for number, memory in memories(model).items():
        norm = memory.query_normalization_layer
        expected = queries[number]
        assert expected.shape[0] == np.sum(inputs["padding_mask"])
        np.testing.assert_allclose(
            norm.moving_mean, expected.mean(0), rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(
            norm.moving_variance, expected.var(0), rtol=1e-4, atol=1e-7
        )
    for old, new in zip(before, outputs_of(model, inputs)):
        np.testing.assert_array_equal(old, new)
    for old, new in zip(
        outputs_of(plain, inputs), outputs_of(model.backbone, inputs)
    ):
        np.testing.assert_array_equal(old, new)


def test_reads_spread_over_the_slots():
    rng = np.random.default_rng(0)
    inputs = keras.Input((8,))
    memory = ProductKeyMemory(16, top_k=4, values_initializer="zeros")
    model = keras.Model(inputs, inputs + memory(inputs))
    # A stream far from 0 and 1, in which tokens differ little.
    x = 20 + 0.1 * rng.normal(size=(400, 8)).astype("float32")
    probe = keras_pkm.models.MemoryProbe(model)
    before = probe.measure(x)[1]
    adapt_memories(model, x)
    after = probe.measure(x)[1]
    assert before["mu"] < 0.1 < 0.6 < after["mu"]


def test_replicas_share_the_work(mirrored):
    x = np.random.default_rng(0).normal(2, 3, (16, 8)).astype("float32")

    def build():
        memory = ProductKeyMemory(4, 2, 2, 4, values_initializer="zeros")
        keras.utils.set_random_seed(0)
        return keras.Sequential([keras.Input((8,)), memory])

    plain = build()
    with mirrored.scope():
        model = build()
    model.set_weights(plain.get_weights())
    for each in (plain, model):
        adapt_memories(each, x, batch_size=8)
    for old, new in zip(plain.weights, model.weights, strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


def test_what_cannot_be_adapted():
    plain = make_plain("GPT2")
    with pytest.raises(ValueError, match="must have a memory to adapt.*GPT2"):
        adapt_memories(plain, inputs_of(plain))
    model = make_model(memory=MEMORY)
    inputs = inputs_of(model.backbone)
    with pytest.raises(ValueError, match='query_normalization="batch"'):
        adapt_memories(model, inputs)
    model = make_model(memory={**BATCH_NORM, "values_initializer": "ones"})
    with pytest.raises(ValueError, match="memory 1 with other values"):
        adapt_memories(model, inputs)
    model = make_model(memory={**BATCH_NORM, "query_hidden_dims": (8,)})
    with pytest.raises(ValueError, match="one batch norm each"):
        adapt_memories(model, inputs)
    nothing = {**inputs, "padding_mask": np.zeros_like(inputs["padding_mask"])}
    model = make_model()
    before = model.get_weights()
    with pytest.raises(ValueError, match="must have tokens.* 0 tokens"):
        adapt_memories(model, nothing)
    model.backbone.transformer_layers[1].memory.query_projection.bias.assign(
        np.full(16, np.nan)
    )
    with pytest.raises(ValueError, match="are finite.*mean is nan"):
        adapt_memories(model, inputs)
    for old, weight in zip(before, model.weights, strict=True):
        if weight.name != "bias":
            np.testing.assert_array_equal(weight, old)
