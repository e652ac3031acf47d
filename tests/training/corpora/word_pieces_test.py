import itertools
import subprocess
import sys

import numpy as np
import pytest

from training.corpora.corpus import open_corpus
from training.corpora.word_pieces import SPECIAL_TOKENS
from training.corpora.word_pieces import load_vocabulary
from training.corpora.word_pieces import make_tokenizer
from training.corpora.word_pieces import train_vocabulary
from training.runs.user_error import UserError


def test_load_vocabulary(write):
    tokens = [*SPECIAL_TOKENS, "the", "##s"]
    text = "\n".join(tokens)
    for content in (text, f"{text}\n", f"{text}\r\n\n".replace("\n", "\r\n")):
        assert load_vocabulary(write(content)) == tokens


def test_real_vocabulary(shared_data):
    path = str(shared_data / "vocab" / "bert-base-uncased-vocab.txt")
    vocabulary = load_vocabulary(path)
    assert len(vocabulary) == 30_522
    assert vocabulary[103] == "[MASK]"
    tokens = make_tokenizer(vocabulary)(["Crème brûlée"])[0]
    assert "[UNK]" not in [vocabulary[token] for token in tokens]


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n", r"but lacks \[MASK\]: add"),
        ("[UNK]\n[MASK]\n[CLS]\n", r"but lacks \[PAD\] \[SEP\]: add"),
        ("", r"but lacks \[PAD\] \[UNK\] \[CLS\] \[SEP\] \[MASK\]: add"),
        ("\n".join([*SPECIAL_TOKENS, "a", "b", "a"]), "once, 'a' first"),
        (b"\xff\xfe", "not UTF-8 text"),
        ("\n".join([*SPECIAL_TOKENS, *"aA", "The"]), "uncased.*such as 'The'"),
    ],
)
def test_wrong_vocabulary(write, content, rule):
    path = write(content)
    with pytest.raises(UserError, match=rule) as error:
        load_vocabulary(path)
    assert path in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_vocabulary(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        load_vocabulary(str(tmp_path / "none.txt"))


@pytest.mark.slow
def test_trained_vocabulary_tokenizes_its_corpus():
    corpus = open_corpus("python-docs")
    vocabulary = train_vocabulary(corpus, 3000, progress=False)
    assert len(vocabulary) == len(set(vocabulary)) == 3000
    assert tuple(vocabulary[:5]) == SPECIAL_TOKENS
    assert "function" in vocabulary
    documents = list(corpus)[:100]
    tokens = make_tokenizer(vocabulary)(documents)
    tokens = np.concatenate([np.asarray(ids) for ids in tokens])
    assert np.mean(tokens == vocabulary.index("[UNK]")) < 0.001


def test_words_are_uncased_and_without_accents():
    vocabulary = train_vocabulary(["Café CAFÉ cafe."] * 3, 40, progress=False)
    assert "cafe" in vocabulary
    assert not any(token.isupper() for token in vocabulary[5:])
    tokenizer = make_tokenizer(vocabulary)
    expected = [vocabulary.index(token) for token in ("cafe", ".", "cafe")]
    assert list(tokenizer("CAFÉ. cafe")) == expected


def test_rare_characters_are_unknown():
    rare = "".join(map(chr, range(0x0400, 0x0900)))
    documents = ["the common word " * 10, " ".join(rare)]
    vocabulary = train_vocabulary(documents, 2500, progress=False)
    assert "common" in vocabulary
    assert len(vocabulary) < 1100


@pytest.mark.slow
def test_vocabulary_is_the_same_in_another_process():
    # All words are equally frequent: every merge is a tie.
    words = itertools.product("abcdefgh", "ijklmn", "opqrst")
    text = " ".join(map("".join, words))
    program = (
        "from training.corpora.word_pieces import train_vocabulary\n"
        f"print(train_vocabulary([{text!r}] * 2, 150, progress=False))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
    )
    vocabulary = train_vocabulary([text] * 2, 150, progress=False)
    assert result.stdout == f"{vocabulary}\n"


def test_vocabulary_without_words():
    with pytest.raises(UserError, match="needs a corpus with words"):
        train_vocabulary(["", " \n"], 100, progress=False)


def test_vocabulary_too_small():
    with pytest.raises(UserError, match="57 tokens, received size 50"):
        letters = "abcdefghijklmnopqrstuvwxyz"
        train_vocabulary([letters, letters[::-1]], 50, progress=False)


def test_words_that_the_tokenizer_does_not_know_are_cut():
    """Else training takes minutes: time grows with the square of the length."""
    vocabulary = train_vocabulary(["ab" * 100_000 + " word"], 80)
    assert max(map(len, vocabulary)) <= 102
    assert "word" in vocabulary
