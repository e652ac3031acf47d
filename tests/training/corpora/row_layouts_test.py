"""How documents are cut into rows of running text."""

import itertools

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from training.batches.objectives import next_tokens
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


def test_every_token_of_a_row_is_predicted(tokenizer):
    """Also if the last row would have nothing but the last end."""
    end = tokenizer.end_token_id
    count = len(tokenizer(DOCUMENTS[0]))
    for length in range(3, count + 3):
        rows = np.array(list(stream_rows(DOCUMENTS[:1], tokenizer, length)))
        _, _, weights = next_tokens(tf.constant(rows), end)
        is_alone = count % (length - 1) == 0
        assert weights.numpy().sum() == count + (not is_alone)
        assert len(rows) == -(-(count + (not is_alone)) // (length - 1))
