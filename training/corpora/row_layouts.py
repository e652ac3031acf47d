"""Cuts the tokens of documents into rows of equal length."""

import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import TypeAlias

import keras_hub

from keras_pkm.text.special_tokens import SpecialTokens
from training.corpora.tokenized_documents import tokenize_documents
from training.corpora.tokenized_documents import tokenize_sentences


def pack_sentences(
    documents: Iterable[Iterable[Sequence[int]]],
    sequence_length: int,
    start_id: int,
    end_id: int,
) -> Iterator[list[int]]:
    """Packs whole sentences, in order, into sequences as full as possible.

    A sequence is `[CLS] sentence sentence … [SEP]`, with a further `[SEP]`
    where a document ends within it. A sentence that no longer fits starts the
    next sequence; one that is longer than a sequence is split. No token is
    lost; empty sentences and documents are dropped.
    """
    room = sequence_length - 2
    if room < 1:
        raise ValueError(
            "`sequence_length` must be at least 3, for [CLS], a token and "
            f"[SEP]. Received: sequence_length={sequence_length}"
        )
    packed: list[int] = []
    for document in documents:
        separator = [end_id] if packed else []
        for piece in _split_long(document, room):
            if len(packed) + len(separator) + len(piece) > room:
                yield [start_id, *packed, end_id]
                packed = []
                separator = []
            packed += separator
            packed += piece
            separator = []
    if packed:
        yield [start_id, *packed, end_id]


def _split_long(
    sentences: Iterable[Sequence[int]], length: int
) -> Iterator[Sequence[int]]:
    """Yields pieces of 1 to `length` ids."""
    for sentence in sentences:
        for first in range(0, len(sentence), length):
            yield sentence[first : first + length]


#: Takes documents, a tokenizer and a length, and yields rows of that length.
RowLayout: TypeAlias = Callable[
    [Iterable[str], keras_hub.tokenizers.Tokenizer, int],
    Iterator[list[int]],
]


def sentence_rows(
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    length: int,
) -> Iterator[list[int]]:
    """Yields rows of whole sentences, for masked language models.

    Sentences are packed by `pack_sentences`, and rows are filled up with
    padding.
    """
    special = SpecialTokens.of(tokenizer)
    sentences = tokenize_sentences(documents, tokenizer)
    for row in pack_sentences(sentences, length, special.start, special.end):
        yield row + [special.padding] * (length - len(row))


def stream_rows(
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    length: int,
) -> Iterator[list[int]]:
    """Yields rows of running text, for causal language models.

    All documents are concatenated, each followed by the end token. A row is the
    start token and the next `length` - 1 tokens of that stream. No token is
    lost, except an end token that would be alone in the last row and looks like
    padding there; documents without tokens are dropped. The last row is filled
    up with end tokens.
    """
    start, end = tokenizer.start_token_id, tokenizer.end_token_id
    tokens = itertools.chain.from_iterable(
        [*ids, end] for ids in tokenize_documents(documents, tokenizer) if ids
    )
    while some := list(itertools.islice(tokens, length - 1)):
        if len(some) < length - 1 and some == [start] == [end]:
            return
        yield [start, *some] + [end] * (length - 1 - len(some))
