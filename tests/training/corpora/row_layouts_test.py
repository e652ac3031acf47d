"""How documents are cut into rows of running text."""

import itertools

import keras_hub
import pytest

from training.corpora.byte_pairs import train_byte_pairs
from training.corpora.row_layouts import stream_rows

DOCUMENTS = [
    "The dog met a fox.\nIt ran;\n\tand ran…  ",
    "",
    "Nobody knows why <|endoftext|> the fox met the dog \U0001f98a.",
    " ",
]


@pytest.fixture(scope="module")
def tokenizer():
    kind = keras_hub.models.GPT2Tokenizer
    return train_byte_pairs(DOCUMENTS, 300, kind, progress=False)


@pytest.mark.parametrize("length", [2, 5, 16, 1000])
def test_no_byte_is_lost(tokenizer, length):
    rows = list(stream_rows(DOCUMENTS, tokenizer, length))
    end = tokenizer.end_token_id
    assert {len(row) for row in rows} == {length}
    assert {row[0] for row in rows} == {tokenizer.start_token_id}
    stream = list(itertools.chain.from_iterable(row[1:] for row in rows))
    found = []
    for is_end, ids in itertools.groupby(stream, lambda token: token == end):
        if not is_end:
            found.append(tokenizer.detokenize(list(ids)))
    # A document without tokens vanishes.
    assert found == [document for document in DOCUMENTS if document]
    # Every document is followed by one end; only the last row is filled up.
    filled = len(stream) - len(
        list(itertools.takewhile(lambda token: token == end, reversed(stream)))
    )
    assert len(stream) - filled <= length - 1
