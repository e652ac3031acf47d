"""Preprocessors of question answerers."""

import json

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from tests.conformance.comparing import check_config


@keras.saving.register_keras_serializable("tests")
class Letters(keras_hub.tokenizers.UnicodeCodepointTokenizer):
    """Letters for tokens: traced in a tenth of the time of word pieces."""

    start_token_id = 1
    end_token_id = 2
    pad_token_id = 0
    mask_token_id = 3
    special_token_ids = [0, 1, 2]


PREPROCESSORS = [
    f"{family}QuestionAnswererPreprocessor"
    for family in ("Bert", "DistilBert", "Roberta")
]
TEXTS = {"question": ["ab", "c"], "context": ["defghi", "jk"]}


def make(name):
    cls = getattr(keras_pkm.models, name)
    return cls(Letters(), sequence_length=9)


def expected(name):
    """Made by hand: the paragraph is cut where there is no room."""
    ends = [2, 2] if name.startswith("Roberta") else [2]
    rows = []
    for question, context in zip(*TEXTS.values()):
        row = [1, *map(ord, question), *ends]
        row += [*map(ord, context)][: 8 - len(row)] + [2]
        rows.append(row + [0] * (9 - len(row)))
    return np.array(rows)


def check(name, features):
    ids = expected(name)
    np.testing.assert_array_equal(features["token_ids"], ids)
    np.testing.assert_array_equal(features["padding_mask"], ids != 0)
    assert ("segment_ids" in features) == name.startswith("Bert")


@pytest.mark.parametrize("name", PREPROCESSORS)
def test_eager(name):
    check(name, make(name)(TEXTS))


# A second to trace, and the same code in all of them.
@pytest.mark.slow
@pytest.mark.parametrize("name", PREPROCESSORS[-1:])
def test_in_a_graph(name):
    """That of `tf.data`."""
    data = tf.data.Dataset.from_tensors(TEXTS).map(make(name))
    (features,) = data
    check(name, features)


@pytest.mark.parametrize("name", PREPROCESSORS)
def test_config(name):
    preprocessor = make(name)
    check(name, check_config(preprocessor)(TEXTS))
    written = json.dumps(keras.saving.serialize_keras_object(preprocessor))
    copy = keras.saving.deserialize_keras_object(json.loads(written))
    assert type(copy) is type(preprocessor)
    check(name, copy(TEXTS))
