"""Tokens in a graph: keras-hub's, with places in the text."""

import re
import unicodedata

import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies

from keras_pkm.text.tokenize import _words_of_bert
from keras_pkm.text.tokenize import clean
from keras_pkm.text.tokenize import readable
from keras_pkm.text.tokenize import tokenize
from keras_pkm.text.tokenize import tokenize_with_offsets
from keras_pkm.text.tokenize import why_not_in_graphs
from keras_pkm.text.transformers_tokenizers import TransformersBertTokenizer
from tests.export.conftest import WORDS
from tests.slow_tier import slow_but

SPECIAL = [
    {"content": token, "special": True, "normalized": False}
    for token in WORDS
    if token.startswith("[")
]
TOKENIZERS = [
    keras_hub.models.BertTokenizer(WORDS, lowercase=True),
    keras_hub.models.BertTokenizer(WORDS, lowercase=False),
    keras_hub.models.BertTokenizer(WORDS, lowercase=True, strip_accents=True),
]
# Those of transformers' directories.
EXACT = [
    TransformersBertTokenizer(WORDS, added_tokens=SPECIAL),
    TransformersBertTokenizer(WORDS, lowercase=False, added_tokens=SPECIAL),
    TransformersBertTokenizer(WORDS, strip_accents=False, split_on_cjk=False),
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
EXACT_GRAPHS = [graph(tokenizer) for tokenizer in EXACT]
# TensorFlow and the library `tokenizers` know the same version of Unicode here.
OLD_CHARACTERS = strategies.characters(max_codepoint=0x5FF)


@pytest.mark.parametrize("number", slow_but(0, range(len(TOKENIZERS))))
@settings(deadline=None, max_examples=30)
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


@pytest.mark.parametrize("number", range(len(EXACT)))
@settings(deadline=None, max_examples=30)
@given(
    texts=strategies.lists(
        strategies.text(OLD_CHARACTERS, max_size=30), max_size=5
    )
)
@example(["Ann's  NAÏVE café, 1999!", "", "Straße in 日本語\u200b?"])
@example(["e\u0301e\u0301 The\u0327", "\x00a\x00 \ufeff", "ﬁ ½ ς … \ufffd"])
@example(["the[MASK]fox [SEP] [mask]", "\ue000 the \ue004fox", "fox😀"])
@example(["x" * 101, "é" * 100, "the\u00a0fox\u3000\u2028dog", "\u00ad"])
@pytest.mark.slow
def test_ids_are_those_of_transformers(number, texts):
    tokenizer, run = EXACT[number], EXACT_GRAPHS[number]
    ids, (_, starts, ends) = run(tf.constant(texts, "string"))
    assert ids.to_list() == tokenizer(texts)
    library = tokenizer.library_tokenizer
    for text, *row in zip(texts, starts.to_list(), ends.to_list()):
        expected = library.encode(text, add_special_tokens=False).offsets
        assert list(zip(*row)) == expected, text


@pytest.mark.slow
def test_almost_all_characters_are_those_of_transformers():
    """The others are newer than the tables of one of both."""
    characters = [
        chr(number)
        for number in range(1, 0x20000)
        if unicodedata.category(chr(number)) != "Cs"
    ]
    texts = [f"a{character}b" for character in characters]
    tokenizer = EXACT[0]
    library = tokenizer.library_tokenizer
    _, words, _ = _words_of_bert(tokenizer, clean(tf.constant(texts)))
    differ = []
    for text, found in zip(texts, words.to_list()):
        plain = library.normalizer.normalize_str(text)
        expected = library.pre_tokenizer.pre_tokenize_str(plain)
        if [word.decode() for word in found] != [word for word, _ in expected]:
            differ.append(text[1])
    assert len(differ) < 1000
    assert not set(differ) & set("".join(map(chr, range(0x600))))


@pytest.mark.parametrize("number", range(len(TOKENIZERS)))
def test_places(number):
    """A known token is what stands there; an unknown one is a word."""
    texts = [
        "The quick brown fox jumped over the lazy dog.",
        'Who met Bob, Ann? "Ann\'s" café in PARIS: 1999!',
        "Straße STRASSE naïve   日本語\tÉtat",
        "",
        "unknowable \u3000 words ---",
    ]
    tokenizer = TOKENIZERS[number]
    vocabulary = tokenizer.get_vocabulary()
    _, found = GRAPHS[number](tf.constant(texts))
    for text, *row in zip(texts, *(each.to_list() for each in found)):
        tokens = list(zip(*row))
        covered = [n for _, start, end in tokens for n in range(start, end)]
        assert covered == [n for n, c in enumerate(text) if not c.isspace()]
        for token, start, end in tokens:
            piece = text[start:end]
            if vocabulary[token] == "[UNK]":
                if piece.isalnum():
                    assert not f" {text}"[start].isalnum()
                    assert not f"{text} "[end].isalnum()
                continue
            if tokenizer.strip_accents:
                parts = unicodedata.normalize("NFD", piece)
                piece = re.sub("[\u0300-\u036f]", "", parts)
            if tokenizer.lowercase:
                piece = piece.casefold()
            assert piece == vocabulary[token].removeprefix("##")


def test_bytes_that_are_not_utf8():
    _, (ids, starts, ends) = GRAPHS[0](tf.constant([b"\xff Ann \xc3", b"\x80"]))
    assert ids.row_lengths().numpy().tolist() == [3, 1]
    assert starts.to_list()[0] == [0, 2, 6]
    assert ends.to_list()[0] == [1, 5, 7]


def test_other_tokenizers():
    for tokenizer in (*TOKENIZERS, *EXACT):
        assert why_not_in_graphs(tokenizer) is None
    byte_pairs = keras_hub.models.RobertaTokenizer(
        {"<s>": 0, "<pad>": 1, "</s>": 2, "<mask>": 3, "a": 4, "aa": 5}, ["a a"]
    )
    for tokenizer, message in (
        (byte_pairs, "a WordPiece tokenizer .* RobertaTokenizer"),
        (
            TransformersBertTokenizer(
                WORDS, added_tokens=[{"content": "fox", "lstrip": True}]
            ),
            "added tokens.*received fox",
        ),
        (
            keras_hub.models.BertTokenizer(
                WORDS, special_tokens_in_strings=True
            ),
            "special_tokens_in_strings=False",
        ),
    ):
        assert re.match(f".*{message}", why_not_in_graphs(tokenizer))


def test_rows_of_texts_and_what_is_no_text():
    tokenizer = EXACT[0]
    rows = [["good film", "fox"], ["a"], []]
    expected = [tokenizer(row) if row else [] for row in rows]
    for inputs in (rows, tf.ragged.constant(rows), tuple(map(np.array, rows))):
        assert list(map(list, tokenizer(inputs))) == expected
    for wrong in ([None, "fox"], [float("nan")], 3):
        with pytest.raises(ValueError, match="`inputs` must be strings"):
            tokenizer(wrong)


@pytest.mark.parametrize(
    "tokenizer, run",
    [
        # The graph of each takes seconds to trace.
        pytest.param(*each, marks=[pytest.mark.slow] if number else [])
        for number, each in enumerate(
            zip(TOKENIZERS + EXACT, GRAPHS + EXACT_GRAPHS)
        )
    ],
)
def test_tokenizers_by_themselves_read_what_is_served(tokenizer, run):
    texts = ["good\u00a0film\u3000a", "good\x00film", "a  good\tfilm"]
    served = run(tf.constant(texts))[0].to_list()
    alone = tokenizer(readable(tokenizer, tf.constant(texts)))
    assert [list(map(int, row)) for row in alone] == served
