"""Encoders of all families: outputs, inputs and variables."""

import contextlib

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.export.encoder import INPUTS
from keras_pkm.export.encoder import Encoder
from tests.models.tiny import SIZES
from tests.models.tiny import features
from tests.models.tiny import tiny_backbone
from tests.strategies import each_strategy

hub = keras_hub.models


@pytest.mark.parametrize(
    "cls, memory_block",
    [
        (hub.BertBackbone, "resm"),
        (hub.DistilBertBackbone, "resm"),
        (hub.RobertaBackbone, "resm"),
        (hub.RobertaBackbone, "pkm"),
        (hub.BertBackbone, "ffn"),
        *(
            pytest.param(cls, None, marks=pytest.mark.slow)
            for cls in (hub.BertBackbone, hub.DistilBertBackbone)
        ),
        (hub.RobertaBackbone, None),
    ],
)
def test_families(cls, memory_block):
    if memory_block is None:
        backbone = cls(**SIZES)
    else:
        backbone = tiny_backbone(plain_cls=cls, memory_block=memory_block)
    encoder = Encoder(backbone)
    x = features(np.random.default_rng(0))
    expected = backbone({name: x[name] for name in backbone.input})
    if not isinstance(expected, dict):
        expected = {
            "sequence_output": expected,
            "pooled_output": expected[:, 0],
        }
    found = tf.function(encoder, autograph=False)(
        {
            "input_word_ids": tf.constant(x["token_ids"], "int32"),
            "input_mask": tf.constant(x["padding_mask"], "int32"),
            "input_type_ids": tf.constant(x["segment_ids"], "int32"),
        }
    )
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5)
    assert len(found["encoder_outputs"]) == 3
    numbers = [1, 3] if memory_block in ("resm", "pkm") else []
    assert list(found["memory_access"]) == list(encoder.tables) == numbers
    assert len(encoder.variables_of(backbone)) == len(backbone.variables)


@pytest.mark.slow
@each_strategy
def test_a_model_of_several_replicas_gives_the_same(make_strategy, is_inside):
    strategy = make_strategy()
    plain = tiny_backbone()
    with strategy.scope():
        backbone = tiny_backbone()
    backbone.set_weights(plain.get_weights())
    x = features(np.random.default_rng(0))
    inputs = {name: tf.constant(x[ours]) for name, ours in INPUTS.items()}
    kept = {number: np.arange(121) % 2 == 0 for number in (1, 3)}
    for arguments in ({}, {"dtype": "int8", "kept": kept}):
        with strategy.scope() if is_inside else contextlib.nullcontext():
            encoder = Encoder(backbone, **arguments)
            found = encoder(inputs)["sequence_output"]
        expected = Encoder(plain, **arguments)
        np.testing.assert_allclose(
            found, expected(inputs)["sequence_output"], atol=1e-5
        )
        assert len(encoder.variables_of(backbone)) == len(
            expected.variables_of(plain)
        )
