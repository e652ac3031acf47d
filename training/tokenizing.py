"""From documents to a file of packed token ids, in bounded memory."""

import itertools
import os
from collections.abc import Iterable
from collections.abc import Iterator

import keras_hub
import numpy as np
import tensorflow as tf
import tensorflow_text
from tqdm import tqdm

from training.packing import pack_sentences
from training.user_error import UserError

_CHARACTERS_PER_BATCH = 2**20
_ROWS_PER_WRITE = 2**12
_DTYPE = np.dtype("<i4")


def tokenize_and_pack(
    documents: Iterable[str],
    tokenizer: keras_hub.models.BertTokenizer,
    sequence_length: int,
    path: str,
    progress_label: str | None = "Tokens",
) -> np.ndarray:
    """Writes the packed token ids of the documents to a file.

    The file is complete or absent: it is written under another name and moved.

    Args:
        documents: iterable of str. A newline ends a sentence.
        tokenizer: `keras_hub.models.BertTokenizer`.
        sequence_length: int. The length of a row.
        path: str. The file: int32 rows, little-endian, padded with the id of
            `[PAD]`. A file that is there is replaced.
        progress_label: str or None. Stands before the progress bar, and names
            the documents in errors. Defaults to `"Tokens"`; with `None` there
            is no bar.

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
    sequences = pack_sentences(
        tokenize_sentences(progress, tokenizer),
        sequence_length,
        tokenizer.cls_token_id,
        tokenizer.sep_token_id,
    )
    partial = f"{path}.partial"
    try:
        with open(partial, "wb") as file:
            while some := list(itertools.islice(sequences, _ROWS_PER_WRITE)):
                rows = np.full(
                    (len(some), sequence_length), tokenizer.pad_token_id, _DTYPE
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
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.remove(partial)
    return open_packed(path, sequence_length)


def open_packed(path: str, sequence_length: int) -> np.ndarray:
    """Opens a file of `tokenize_and_pack` without reading it.

    Returns:
        A read-only memory map of shape `(rows, sequence_length)`, int32.

    Raises:
        ValueError: the file is not made of rows of this length.
    """
    size = os.path.getsize(path)
    if not size or size % (sequence_length * _DTYPE.itemsize):
        raise ValueError(
            f"`path` must hold int32 rows of `sequence_length` ids. Received: "
            f"path={path!r} of {size} bytes, sequence_length={sequence_length}"
        )
    return np.memmap(path, _DTYPE, "r").reshape(-1, sequence_length)


def tokenize_sentences(
    documents: Iterable[str], tokenizer: keras_hub.models.BertTokenizer
) -> Iterator[list[list[int]]]:
    """Yields each document as a list of sentences, each a list of token ids."""
    breaker = tensorflow_text.StateBasedSentenceBreaker()

    # Outside of a graph the tokenizer makes Python lists: much slower.
    @tf.function
    def tokenize(paragraphs):
        sentences = breaker.break_sentences(paragraphs)
        return sentences.with_values(tokenizer(sentences.values))

    tokenize = tokenize.get_concrete_function(tf.TensorSpec([None], tf.string))

    for batch in _batches(documents):
        # The breaker does not take a newline for the end of a sentence.
        paragraphs = [document.splitlines() for document in batch]
        limits = np.cumsum([0, *map(len, paragraphs)])
        lines = list(itertools.chain.from_iterable(paragraphs))
        tokens = tokenize(tf.constant(lines, tf.string))
        ids = tokens.flat_values.numpy().tolist()
        sentence_limits = tokens.values.row_splits.numpy()
        document_limits = tokens.row_splits.numpy()[limits]
        for first, last in itertools.pairwise(document_limits):
            sentences = itertools.pairwise(sentence_limits[first : last + 1])
            yield [ids[start:end] for start, end in sentences]


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
