import pytest

from training.corpora.corpus import Corpus
from training.corpora.corpus import open_corpus
from training.corpora.corpus import split_documents
from training.runs.user_error import UserError

NUMBERS = Corpus("numbers", lambda: map(str, range(4000)))


def test_text_files(write):
    path = write("one\n\ntwo\n")
    corpus = open_corpus(path)
    assert corpus.name == path
    assert list(corpus) == list(corpus) == ["one", "two"]


def test_real_text(shared_data):
    corpus = open_corpus(str(shared_data / "wikitext-2" / "wiki.valid.tokens"))
    # The published number of tokens, less the 3,760 ends of lines.
    assert sum(len(text.split()) for text in corpus) == 217_646 - 3_760


def test_a_name_that_is_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="or pass 'python-docs'"):
        open_corpus("python_docs")


def test_split_is_a_partition():
    train, held_out = split_documents(NUMBERS, 0.1, seed=3)
    assert sorted([*train, *held_out]) == sorted(NUMBERS)
    # 400 expected; the standard deviation is 19.
    assert 300 < len(list(held_out)) < 500
    assert train.name == "numbers, training"
    assert held_out.name == "numbers, held out"


def test_split_depends_on_seed_and_text_alone():
    held_out = set(split_documents(NUMBERS, 0.1, seed=3)[1])
    assert held_out == set(split_documents(NUMBERS, 0.1, seed=3)[1])
    assert held_out != set(split_documents(NUMBERS, 0.1, seed=4)[1])
    twice = Corpus("twice", lambda: [*NUMBERS, *NUMBERS])
    train, held_out = split_documents(twice, 0.1, seed=3)
    assert not set(train) & set(held_out)


def test_nothing_held_out():
    train, held_out = split_documents(NUMBERS, 0.0)
    assert list(train) == list(NUMBERS)
    assert not list(held_out)
