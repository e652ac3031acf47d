import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.models import MemoryBertBackbone
from keras_pkm.models import MemoryBertMaskedLM
from keras_pkm.models import add_memory
from keras_pkm.models import copy_matching_weights
from tests.contracts import fixed_rng
from tests.contracts import fresh_rng
from tests.models.tiny import MEMORY
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import SIZES
from tests.models.tiny import features
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_backbone
from tests.slow_tier import eager_and_graph

BASE = {
    "vocabulary_size": 30_522,
    "num_layers": 12,
    "num_heads": 12,
    "hidden_dim": 768,
    "intermediate_dim": 3072,
}
LARGE = {
    "vocabulary_size": 30_522,
    "num_layers": 24,
    "num_heads": 16,
    "hidden_dim": 1024,
    "intermediate_dim": 4096,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes, memory_layers, block, expected",
    [
        # The paper's 110M, 515M and 506M count the NSP head's 1,538, too.
        (BASE, (), "resm", 110_106_428 - 1538),
        (BASE, (4, 8), "resm", 515_387_196 - 1538),
        (BASE, (4, 8), "pkm", 505_942_332 - 1538),
        # The paper's 876M, which is rounded.
        (LARGE, (8, 16), "resm", 876_246_842),
    ],
)
def test_parameter_counts_of_the_paper(sizes, memory_layers, block, expected):
    # Inside, weights have shapes but no values.
    with keras.StatelessScope(initialize_variables=False):
        backbone = add_memory(
            keras_hub.models.BertBackbone(**sizes),
            memory_layers,
            memory_block=block,
        )
        model = MemoryBertMaskedLM(backbone, compile=False)
    trainable = sum(v.shape.num_elements() for v in model.trainable_variables)
    assert trainable == expected
    memories = len(memory_layers) if block != "ffn" else 0
    assert model.count_params() == expected + 2048 * memories


@pytest.mark.slow
def test_a_memory_has_the_documented_parameters():
    with keras.StatelessScope(initialize_variables=False):
        backbone = add_memory(
            keras_hub.models.BertBackbone(**BASE), (4,), memory_block="resm"
        )
    memory = backbone.transformer_layers[3].memory
    counts = {
        weight.path.split("/memory/")[1]: weight.shape.num_elements()
        for weight in memory.trainable_weights
    }
    assert counts == {
        "sub_keys": 524_288,
        "table/values": 201_326_592,
        "query_projection/kernel": 787_456 - 1024,
        "query_projection/bias": 1024,
        "query_normalization/gamma": 1024,
        "query_normalization/beta": 1024,
    }


@pytest.mark.parametrize("block", ["ffn", "resm"])
def test_without_memory_equals_bert(block):
    plain = keras_hub.models.BertBackbone(**SIZES)
    ours = tiny_backbone(memory_layers=(), memory_block=block)
    report = copy_matching_weights(plain, ours)
    assert not report.new and not report.left_over
    x = features(fresh_rng())
    for training in (False, True):
        actual = ours(x, training=training)
        for name, expected in plain(x, training=training).items():
            assert np.all(actual[name] == expected)


@pytest.mark.parametrize("block", ["pkm", "resm"])
def test_memory_outputs(block):
    backbone = tiny_backbone(memory_layers=[3, 1], memory_block=block)
    assert backbone.memory_layers == (1, 3)
    assert list(backbone.memory_outputs) == [1, 3]
    x = features(fresh_rng())
    probe = keras.Model(backbone.inputs, backbone.memory_outputs)
    for slots, weights in probe(x).values():
        assert slots.shape == weights.shape == (8, 12, 2, 4)
        assert slots.dtype == tf.int32
        total = np.sum(weights, axis=(-1, -2))
        np.testing.assert_allclose(total, 2 * x["padding_mask"], rtol=1e-6)
    assert tiny_backbone(memory_block="ffn").memory_outputs == {}


def test_padding_changes_nothing():
    backbone = tiny_backbone()
    x = features(fixed_rng())
    mask = x["padding_mask"].astype(bool)
    other = {**x, "token_ids": np.where(mask, x["token_ids"], 7)}
    for training in (False, True):
        np.testing.assert_allclose(
            backbone(x, training=training)["sequence_output"][mask],
            backbone(other, training=training)["sequence_output"][mask],
            atol=1e-5,
        )


@pytest.mark.slow
def test_preset(tmp_path):
    backbone = tiny_backbone()
    backbone.save_to_preset(str(tmp_path))
    x = features(fresh_rng())
    for cls in (MemoryBertBackbone, keras_hub.models.Backbone):
        copy = cls.from_preset(str(tmp_path))
        assert type(copy) is MemoryBertBackbone
        np.testing.assert_array_equal(
            copy(x)["sequence_output"], backbone(x)["sequence_output"]
        )
    mixed = MemoryBertBackbone.from_preset(
        str(tmp_path), dtype="mixed_bfloat16"
    )
    assert mixed(x)["sequence_output"].dtype == tf.bfloat16


def test_a_plain_preset_is_of_another_class(tmp_path):
    plain = keras_hub.models.BertBackbone(**SIZES)
    plain.save_to_preset(str(tmp_path))
    with pytest.raises(ValueError, match="type `BertBackbone`.*`MemoryBertBa"):
        MemoryBertBackbone.from_preset(str(tmp_path))


@pytest.mark.parametrize("block", ["pkm", "resm", "serial"])
def test_init(block):
    """The paper's "+Init": the plain model's weights, and memories."""
    plain = keras_hub.models.BertBackbone(**SIZES)
    backbone = add_memory(plain, (2,), MEMORY, block)
    weights = {weight.path: weight for weight in backbone.weights}
    left_over = []
    for weight in plain.weights:
        if weight.path in weights:
            assert weights[weight.path] is weight
        else:
            left_over.append(weight.path)
    assert len(left_over) == (4 if block == "pkm" else 0)
    assert all("transformer_layer_1/feedforward" in p for p in left_over)
    x = features(fresh_rng())
    same = np.array_equal(
        backbone(x)["sequence_output"], plain(x)["sequence_output"]
    )
    assert same == (block != "pkm")


def test_memories_are_added_to_a_plain_model_of_ours():
    plain = tiny_backbone(memory_layers=(), normalization_epsilon=1e-3)
    backbone = add_memory(plain, (1,), MEMORY, "resm")
    assert list(backbone.memory_outputs) == [1]
    assert backbone.normalization_epsilon == 1e-3
    x = features(fresh_rng())
    np.testing.assert_array_equal(
        backbone(x)["sequence_output"], plain(x)["sequence_output"]
    )
    with pytest.raises(ValueError, match="must have no memory yet"):
        add_memory(backbone, (2,), MEMORY, "resm")


@pytest.mark.parametrize(
    "memory_layers", [(0,), (4,), (-1,), (1, 1), (1.5,), (1, 2, 3, 4)]
)
def test_memory_layers_out_of_range(memory_layers):
    with pytest.raises(ValueError, match="1 to `num_layers`") as raised:
        tiny_backbone(memory_layers=memory_layers)
    assert f"memory_layers={memory_layers}" in str(raised.value)
    assert "num_layers=3" in str(raised.value)


@eager_and_graph
def test_tasks_of_keras_hub_accept_it(eager):
    rng = fresh_rng()
    masked_lm = keras_hub.models.BertMaskedLM(tiny_backbone())
    x, labels, weights = masked_batch(rng)
    assert masked_lm(x).shape == (8, 3, 100)
    classifier = keras_hub.models.BertTextClassifier(
        tiny_backbone(**ONE_LAYER), 4
    )
    classifier.run_eagerly = eager
    classifier.fit(
        features(rng),
        rng.integers(0, 4, 8),
        batch_size=4,
        shuffle=False,
        verbose=0,
    )
    assert classifier(features(rng)).shape == (8, 4)
