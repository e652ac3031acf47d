"""Turns documents into token ids, many documents at a time."""

import itertools
from collections.abc import Iterable
from collections.abc import Iterator

import keras_hub
import tensorflow as tf
import tensorflow_text

from training.corpora.offset_tokenizer import OffsetTokenizer

_CHARACTERS_PER_BATCH = 2**20


def tokenize_documents(
    documents: Iterable[str], tokenizer: keras_hub.tokenizers.Tokenizer
) -> Iterator[list[int]]:
    """Yields the token ids of each whole document, including line ends."""
    split = OffsetTokenizer(tokenizer)
    for batch in _batches(documents):
        yield from split.ids(batch)


def tokenize_sentences(
    documents: Iterable[str], tokenizer: keras_hub.tokenizers.Tokenizer
) -> Iterator[list[list[int]]]:
    """Yields each document as a list of sentences, each a list of token ids."""
    breaker = tensorflow_text.StateBasedSentenceBreaker()
    split = OffsetTokenizer(tokenizer)
    for batch in _batches(documents):
        # For the sentence breaker, a newline does not end a sentence.
        paragraphs = [document.splitlines() for document in batch]
        lines = [
            line.strip().encode()
            for line in itertools.chain.from_iterable(paragraphs)
        ]
        _, _, ends = breaker.break_sentences_with_offsets(
            tf.constant(lines, tf.string)
        )
        pieces = map(_cut, lines, ends.to_list())
        texts = [
            [text for _ in document for text in next(pieces)]
            for document in paragraphs
        ]
        ids = iter(split.ids(list(itertools.chain.from_iterable(texts))))
        for document in texts:
            yield list(itertools.islice(ids, len(document)))


def _cut(line: bytes, ends: list[int]) -> list[str]:
    """Returns the sentences of a line, each with the space before it.

    That space is part of a byte pair.
    """
    return [line[a:b].decode() for a, b in itertools.pairwise([0, *ends])]


def _batches(documents: Iterable[str]) -> Iterator[list[str]]:
    """Yields batches of documents with about a million characters each."""
    batch = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document)
        if size >= _CHARACTERS_PER_BATCH:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch
