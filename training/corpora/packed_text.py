"""Packs documents into a file of token ids, in bounded memory."""

import itertools
import pathlib
from collections.abc import Iterable

import keras_hub
import numpy as np
from tqdm import tqdm

from keras_pkm.files.whole_files import replacing_file
from training.corpora.row_layouts import RowLayout
from training.corpora.row_layouts import sentence_rows
from training.runs.user_error import UserError

_ROWS_PER_WRITE = 2**12
_DTYPE = np.dtype("<i4")


def tokenize_and_pack(
    documents: Iterable[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    sequence_length: int,
    path: pathlib.Path,
    progress_label: str | None = "Tokens",
    limit: int | None = None,
    layout: RowLayout = sentence_rows,
) -> np.ndarray:
    """Writes the packed token ids of the documents to a file.

    The file is written whole or not at all: under another name, and then moved.
    """
    progress = tqdm(
        documents,
        progress_label,
        unit=" documents",
        disable=progress_label is None,
    )
    rows = layout(progress, tokenizer, sequence_length)
    rows = itertools.islice(rows, limit)
    with replacing_file(path) as partial:
        with open(partial, "wb") as file:
            while some := list(itertools.islice(rows, _ROWS_PER_WRITE)):
                np.array(some, _DTYPE).tofile(file)
            size = file.tell()
        if not size:
            raise UserError(
                f"the corpus ({progress_label or path}) must contain a token, "
                "but has none: pass more text, or change the held-out share"
            )
    return open_packed(path, sequence_length, tokenizer.vocabulary_size())


def open_packed(
    path: pathlib.Path, sequence_length: int, vocabulary_size: int
) -> np.ndarray:
    """Opens a file of `tokenize_and_pack`, and checks all of its ids."""
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
            f"'{path}' must contain rows of {sequence_length} ids from 0 to "
            f"{vocabulary_size - 1:,}, but has {error}: put back a copy of it, "
            "or start over with another --out"
        ) from error
    return rows
