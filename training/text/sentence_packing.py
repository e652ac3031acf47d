"""Packs sentences into sequences of limited length."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence


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
