import os

import numpy as np
import pytest

from training.corpora.packed_text import open_packed
from training.corpora.packed_text import tokenize_and_pack
from training.corpora.tokenized_documents import tokenize_sentences
from training.runs.user_error import UserError

DOCUMENTS = [
    "The dog did bark. It was the fox!\nA new line",
    "",
    "\n \n",
    "Nobody knows why.",
]


def test_sentences(tokenizer):
    sentences = [
        ["The dog did bark.", "It was the fox!", "A new line"],
        [],
        [],
        ["Nobody knows why."],
    ]
    expected = [[list(tokenizer(s)) for s in doc] for doc in sentences]
    got = list(tokenize_sentences(DOCUMENTS, tokenizer))
    # A line of white space is a sentence without tokens.
    got = [[sentence for sentence in doc if sentence] for doc in got]
    assert got == expected


def test_batches_do_not_change_sentences(tokenizer, monkeypatch):
    documents = DOCUMENTS * 5
    together = list(tokenize_sentences(documents, tokenizer))
    monkeypatch.setattr(
        "training.corpora.tokenized_documents._CHARACTERS_PER_BATCH", 50
    )
    assert list(tokenize_sentences(documents, tokenizer)) == together


def test_real_text_is_not_lost(shared_data, tokenizer):
    text = (shared_data / "wikitext-2" / "wiki.valid.tokens").read_text()
    text = text[:200_000]
    (sentences,) = tokenize_sentences([text], tokenizer)
    assert len(sentences) > 1000
    tokens = [token for sentence in sentences for token in sentence]
    assert tokens == list(tokenizer(text))


def test_rows(tokenizer, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("training.corpora.packed_text._ROWS_PER_WRITE", 2)
    path = tmp_path / "packed.bin"
    rows = tokenize_and_pack(DOCUMENTS * 3, tokenizer, 16, path, "Words")
    assert rows.dtype == np.int32 and rows.shape[1] == 16 and len(rows) > 4
    assert not rows.flags.writeable
    assert np.all(rows[:, 0] == tokenizer.cls_token_id)
    for row in rows:
        ids = row[row != tokenizer.pad_token_id]
        assert ids[-1] == tokenizer.sep_token_id
        assert np.all(row[len(ids) :] == tokenizer.pad_token_id)
    np.testing.assert_array_equal(rows, open_packed(path, 16, 40_000))
    assert os.listdir(tmp_path) == ["packed.bin"]
    assert "Words: 100%" in capsys.readouterr().err


def test_a_long_line(tokenizer, tmp_path):
    path = tmp_path / "packed.bin"
    line = "the lazy dog " * 100_000
    rows = tokenize_and_pack([line], tokenizer, 128, path, None)
    assert np.sum(rows > 4) == len(tokenizer("the lazy dog")) * 100_000


def test_no_token(tokenizer, tmp_path):
    path = tmp_path / "packed.bin"
    with pytest.raises(UserError, match=r"\(Held out\) must contain a token"):
        tokenize_and_pack(["", "\n"], tokenizer, 16, path, "Held out")
    assert not os.listdir(tmp_path)


def test_an_error_leaves_no_file(tokenizer, tmp_path):
    def documents():
        yield from DOCUMENTS
        raise OSError("The disk is gone.")

    path = tmp_path / "packed.bin"
    with pytest.raises(OSError, match="disk"):
        tokenize_and_pack(documents(), tokenizer, 16, path, None)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "length, size, damage, reason",
    [
        (17, 1000, None, "bytes"),
        (16, 1000, lambda ids: ids[:-1], "bytes"),
        (16, 1000, lambda ids: ids[:0], "0 bytes"),
        (16, 30, None, "out of range"),
        (16, 1000, lambda ids: -ids, "out of range"),
    ],
)
def test_open_packed_checks(length, size, damage, reason, tokenizer, tmp_path):
    path = tmp_path / "packed.bin"
    rows = tokenize_and_pack(DOCUMENTS, tokenizer, 16, path, None)
    if damage:
        damage(np.array(rows).ravel()).tofile(path)
    with pytest.raises(UserError, match=f"packed.bin.*{reason}"):
        open_packed(path, length, size)


@pytest.mark.slow
def test_a_limit_stops_reading(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "training.corpora.tokenized_documents._CHARACTERS_PER_BATCH", 50
    )
    read = []

    def documents():
        for document in DOCUMENTS * 100:
            read.append(document)
            yield document

    path = tmp_path / "packed.bin"
    whole = tokenize_and_pack(DOCUMENTS * 100, tokenizer, 16, path, None)
    whole = np.array(whole)
    rows = tokenize_and_pack(documents(), tokenizer, 16, path, None, limit=3)
    np.testing.assert_array_equal(rows, whole[:3])
    assert len(read) < 20
    rows = tokenize_and_pack(DOCUMENTS, tokenizer, 16, path, None, limit=999)
    assert len(rows) < 10
