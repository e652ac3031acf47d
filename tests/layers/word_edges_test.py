"""Where a subject is part of a longer word, by the kind of tokenizer."""

import keras_hub
import pytest

from keras_pkm.layers.word_edges import _BYTES
from keras_pkm.layers.word_edges import BEGINS
from keras_pkm.layers.word_edges import ENDS
from keras_pkm.layers.word_edges import read_word_edges
from keras_pkm.layers.word_edges import word_edges


def join(tokenizer, first, second):
    """Whether a token and the next one are in the same word."""
    bits = read_word_edges(word_edges(tokenizer))
    first, second = map(tokenizer.token_to_id, (first, second))
    return bool(bits[first] & ENDS and bits[second] & BEGINS)


@pytest.mark.parametrize(
    ("second", "expected"),
    [("##by", True), ("lives", False), (",", False), ("[SEP]", False)],
)
def test_word_piece(second, expected):
    vocabulary = "[PAD] [UNK] [CLS] [SEP] [MASK] bob ##by lives ,".split()
    tokenizer = keras_hub.models.BertTokenizer(vocabulary)
    assert join(tokenizer, "bob", second) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Bob", "by", True),
        ("Bob", "Ġlives", False),
        ("京", "住", False),
        ("キム", "さん", False),
        ("수", "는", False),
        ("Köln", "ärin", True),
        # Vowels and accents that are characters of their own.
        ("राम", "ायण", True),
        ("Jose", "\u0301", True),
        # Parts of characters, as byte pairs leave them.
        ("Боб", b"\xd0", True),
        ("Tr", b"\xe1\xba", True),
        ("राम", b"\xe0\xa4", True),
        ("Bob", b"\xe2\x80", False),
        ("Bob", b"\xf0\x9f", False),
        ("京", b"\xe4", False),
        ("Bob", b"by\xe2\x80", True),
    ],
)
def test_scripts_without_spaces(first, second, expected):
    """In which what follows a name is another word."""
    letters = [chr(code) for code in range(33, 127)]
    names = sorted({*map(as_bytes, (first, second)), "Ġ", "in", *letters})
    vocabulary = {token: number for number, token in enumerate(names)}
    tokenizer = keras_hub.tokenizers.BytePairTokenizer(vocabulary, ["i n"])
    assert join(tokenizer, as_bytes(first), as_bytes(second)) == expected


def test_ids_without_tokens():
    """Llama 3 has some in the middle of its vocabulary."""
    vocabulary = {"Ġ": 0, "B": 1, "b": 2, "in": 5, "i": 6, "n": 7}
    tokenizer = keras_hub.tokenizers.BytePairTokenizer(vocabulary, ["i n"])
    bits = read_word_edges(word_edges(tokenizer))
    assert bits.tolist() == [0, 3, 3, 0, 0, 3, 3, 3]


def as_bytes(text):
    """A text, or a part of one, as tokens of byte pairs spell it."""
    spelled = {number: character for character, number in _BYTES.items()}
    if isinstance(text, bytes):
        return "".join(spelled[byte] for byte in text)
    head, text = ("Ġ", text[1:]) if text[0] == "Ġ" else ("", text)
    return head + "".join(spelled[byte] for byte in text.encode())
