"""From documents to a file of packed token ids, in bounded memory."""

import itertools
import pathlib
from collections.abc import Iterable
from collections.abc import Iterator

import keras_hub
import numpy as np
import tensorflow as tf
import tensorflow_text
from tqdm import tqdm

from keras_pkm.runs.user_error import UserError
from keras_pkm.runs.whole_files import replacing_file
from keras_pkm.text.special_tokens import SpecialTokens
from training.text.offset_tokenizer import make_offset_tokenizer
from training.text.sentence_packing import pack_sentences

_CHARACTERS_PER_BATCH = 2**20
_ROWS_PER_WRITE = 2**12
_DTYPE = np.dtype("<i4")


def tokenize_and_pack(
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    sequence_length: int,
    path: pathlib.Path,
    progress_label: str | None = "Tokens",
    limit: int | None = None,
) -> np.ndarray:
    """Writes the packed token ids of the documents to a file.

    The file is complete or absent: it is written under another name and moved.

    Args:
        documents: iterable of str. A newline ends a sentence.
        tokenizer: that of a BERT, DistilBERT or RoBERTa of keras-hub.
        sequence_length: int. The length of a row.
        path: The file: int32 rows, little-endian, padded with the
            tokenizer's padding. A file that is there is replaced.
        progress_label: str or None. Stands before the progress bar, and names
            the documents in errors. Defaults to `"Tokens"`; with `None` there
            is no bar.
        limit: int or None. The most rows: once there are so many, no more
            documents are read. Defaults to `None`: all.

    Returns:
        The rows, as `open_packed` returns them.

    Raises:
        UserError: the documents hold no token.
    """
    progress = tqdm(
        documents,
        progress_label,
        unit=" documents",
        disable=progress_label is None,
    )
    special = SpecialTokens.of(tokenizer)
    sequences = pack_sentences(
        tokenize_sentences(progress, tokenizer),
        sequence_length,
        special.start,
        special.end,
    )
    sequences = itertools.islice(sequences, limit)
    with replacing_file(path) as partial:
        with open(partial, "wb") as file:
            while some := list(itertools.islice(sequences, _ROWS_PER_WRITE)):
                rows = np.full(
                    (len(some), sequence_length), special.padding, _DTYPE
                )
                for row, sequence in zip(rows, some):
                    row[: len(sequence)] = sequence
                rows.tofile(file)
            size = file.tell()
        if not size:
            raise UserError(
                f"the corpus ({progress_label or path}) must hold a token, "
                "but holds none: pass more text, or change the held-out share"
            )
    return open_packed(path, sequence_length, tokenizer.vocabulary_size())


def open_packed(
    path: pathlib.Path, sequence_length: int, vocabulary_size: int
) -> np.ndarray:
    """Opens a file of `tokenize_and_pack`, and checks all of its ids.

    Args:
        path: The file.
        sequence_length: The length of a row.
        vocabulary_size: The number of tokens.

    Returns:
        A read-only memory map of shape `(rows, sequence_length)`, int32.

    Raises:
        UserError: the file does not hold such rows.
    """
    try:
        size = path.stat().st_size
        if not size or size % (sequence_length * _DTYPE.itemsize):
            raise ValueError(f"{size:,} bytes")
        rows = np.memmap(path, _DTYPE, "r").reshape(-1, sequence_length)
        for first in range(0, len(rows), _ROWS_PER_WRITE):
            some = rows[first : first + _ROWS_PER_WRITE]
            if not (0 <= some.min() and some.max() < vocabulary_size):
                raise ValueError(f"an id out of range after row {first:,}")
    except (OSError, ValueError) as error:
        raise UserError(
            f"'{path}' must hold rows of {sequence_length} ids from 0 to "
            f"{vocabulary_size - 1:,}, but has {error}: put back a copy of it, "
            "or begin anew with another --run-dir"
        ) from error
    return rows


def tokenize_sentences(
    documents: Iterable[str], tokenizer: keras_hub.tokenizers.Tokenizer
) -> Iterator[list[list[int]]]:
    """Yields each document as a list of sentences, each a list of token ids."""
    breaker = tensorflow_text.StateBasedSentenceBreaker()
    # keras-hub's own give the same ids, those of byte pairs much slower.
    tokenizer = make_offset_tokenizer(tokenizer)
    for batch in _batches(documents):
        # The breaker does not take a newline for the end of a sentence.
        paragraphs = [document.splitlines() for document in batch]
        lines = list(itertools.chain.from_iterable(paragraphs))
        lines = [line.strip().encode() for line in lines]
        _, _, ends = breaker.break_sentences_with_offsets(
            tf.constant(lines, tf.string)
        )
        pieces = map(_cut, lines, ends.to_list())
        texts = [
            [text for _ in document for text in next(pieces)]
            for document in paragraphs
        ]
        encodings = iter(
            tokenizer.encode_batch_fast(
                list(itertools.chain.from_iterable(texts)),
                add_special_tokens=False,
            )
        )
        for document in texts:
            yield [
                encoding.ids
                for encoding in itertools.islice(encodings, len(document))
            ]


def _cut(line: bytes, ends: list[int]) -> list[str]:
    """The sentences of a line, each with the space before it.

    That is part of a byte pair.
    """
    return [line[a:b].decode() for a, b in itertools.pairwise([0, *ends])]


def _batches(documents: Iterable[str]) -> Iterator[list[str]]:
    """Yields documents together that have about a million characters."""
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
