"""Inputs are laid out as keras-hub's preprocessors lay them out."""

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.export.encoder import INPUTS
from keras_pkm.export.pack_inputs import pack
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.tokenize import tokenize

TEXTS = ["", "the quick brown fox jumps over the lazy dog " * 2, "ann met bob"]
PAIRS = ["who met bob?" * 9, "in paris " * 7, ""]


@pytest.mark.parametrize(
    "length", [8, *(pytest.param(n, marks=pytest.mark.slow) for n in (16, 64))]
)
@pytest.mark.parametrize(
    "texts", [pytest.param((TEXTS,), marks=pytest.mark.slow), (TEXTS, PAIRS)]
)
def test_as_keras_hub(tokenizer, texts, length):
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        tokenizer, sequence_length=length
    )
    data = texts if len(texts) > 1 else texts[0]
    expected, _ = next(
        iter(tf.data.Dataset.from_tensors((data, [0, 0, 0])).map(preprocessor))
    )

    @tf.function(autograph=False)
    def run(*texts):
        segments = [tokenize(tokenizer, text) for text in texts]
        return pack(segments, length, SpecialTokens.of(tokenizer))

    found = run(*map(tf.constant, texts))
    for name, ours in INPUTS.items():
        np.testing.assert_array_equal(
            found[name], tf.cast(expected[ours], "int32"), name
        )
