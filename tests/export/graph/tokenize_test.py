"""Tokens in a graph: keras-hub's, with places in the text."""

import unicodedata

import keras_hub
import pytest
import tensorflow as tf
from hypothesis import example
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies

from export.graph.tokenize import check_tokenizer
from export.graph.tokenize import clean
from export.graph.tokenize import tokenize
from export.graph.tokenize import tokenize_with_offsets
from keras_pkm.runs.user_error import UserError
from tests.export.conftest import WORDS
from training.text.offset_tokenizer import make_offset_tokenizer

TOKENIZERS = [
    keras_hub.models.BertTokenizer(WORDS, lowercase=True),
    keras_hub.models.BertTokenizer(WORDS, lowercase=False),
    keras_hub.models.BertTokenizer(WORDS, lowercase=True, strip_accents=True),
]


def graph(tokenizer):
    @tf.function(
        input_signature=[tf.TensorSpec((None,), "string")], autograph=False
    )
    def run(text):
        text = clean(text)
        return tokenize(tokenizer, text), tokenize_with_offsets(tokenizer, text)

    return run


def with_plain_spaces(text):
    return "".join(
        " " if c == "\0" or unicodedata.category(c)[0] == "Z" else c
        for c in text
    )


GRAPHS = [graph(tokenizer) for tokenizer in TOKENIZERS]


@pytest.mark.parametrize("number", range(len(TOKENIZERS)))
@settings(deadline=None, max_examples=100)
@given(texts=strategies.lists(strategies.text(max_size=30), max_size=5))
@example(["Ann's  NAÏVE café, 1999!", "", "Straße in 日本語\u200b?"])
@example(["e\u0301e\u0301 The\u0327", "\x00 \ufeff", "ﬁ ½ ς"])
def test_ids_are_those_of_keras_hub(number, texts):
    tokenizer, run = TOKENIZERS[number], GRAPHS[number]
    ids, (ids_too, starts, ends) = run(tf.constant(texts, "string"))
    expected = [list(tokenizer([with_plain_spaces(t)])[0]) for t in texts]
    assert ids.to_list() == expected
    assert ids_too.to_list() == expected
    for text, row in zip(texts, zip(starts.to_list(), ends.to_list())):
        for start, end in zip(*row):
            assert 0 <= start < end <= len(text)


@pytest.mark.parametrize("number", range(len(TOKENIZERS)))
def test_places(number):
    """They are those of training."""
    texts = [
        "The quick brown fox jumped over the lazy dog.",
        'Who met Bob, Ann? "Ann\'s" café in PARIS: 1999!',
        "Straße STRASSE naïve   日本語\tÉtat",
        "",
        "unknowable \u3000 words ---",
    ]
    tokenizer = TOKENIZERS[number]
    _, (_, starts, ends) = GRAPHS[number](tf.constant(texts))
    offsets = make_offset_tokenizer(tokenizer)
    for text, row in zip(texts, zip(starts.to_list(), ends.to_list())):
        expected = offsets.encode(text, add_special_tokens=False).offsets
        assert list(zip(*row)) == expected, text


def test_bytes_that_are_not_utf8():
    _, (ids, starts, ends) = GRAPHS[0](tf.constant([b"\xff Ann \xc3", b"\x80"]))
    assert ids.row_lengths().numpy().tolist() == [3, 1]
    assert starts.to_list()[0] == [0, 2, 6]
    assert ends.to_list()[0] == [1, 5, 7]


def test_other_tokenizers():
    tokenizer = keras_hub.models.RobertaTokenizer(
        {"<s>": 0, "<pad>": 1, "</s>": 2, "<mask>": 3, "a": 4, "aa": 5}, ["a a"]
    )
    with pytest.raises(UserError, match="RobertaTokenizer: pass --what enc"):
        check_tokenizer(tokenizer)
