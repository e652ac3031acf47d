"""Draws text on which a causal language model is measured."""

import itertools
import random
from collections.abc import Sequence

import numpy as np

from keras_pkm.teaching.fact_prompts import Tokenize
from training.corpora.corpus import Corpus
from training.runs.user_error import UserError

# What is read of a corpus: its first documents, and the beginning of each, so
# that a few long ones are not all of the text.
_DOCUMENTS = 2_000
_CHARACTERS = 4_000
_TOKENS = 40_000
_WINDOW = 128
#: Number of tokens on which a model is measured.
MEASURED = 32 * _WINDOW
_SEED = 0


def draw_documents(corpus: Corpus) -> list[str]:
    """Returns the beginnings of documents, always in the same random order."""
    documents = [
        document[:_CHARACTERS]
        for document in itertools.islice(corpus, _DOCUMENTS)
    ]
    random.Random(_SEED).shuffle(documents)
    return documents


def ids_of(
    documents: Sequence[str], tokenize: Tokenize, what: str
) -> np.ndarray:
    """Returns the ids of documents, up to a fixed number.

    Raises:
        UserError: there are too few to measure a model. `what` names the text.
    """
    ids: list[int] = []
    for document in documents:
        if len(ids) >= _TOKENS:
            break
        ids += tokenize(f"{document}\n")
    if len(ids) < MEASURED:
        raise UserError(
            f"{what} must have at least {MEASURED:,} tokens, received "
            f"{len(ids):,}: pass a longer text"
        )
    return np.array(ids[:_TOKENS], "int32")


def draw_windows(ids: np.ndarray, longest: int | None = None) -> np.ndarray:
    """Returns windows of a text, drawn without replacement.

    `longest` is the number of tokens that the model takes at most.
    """
    length = min(_WINDOW, longest or _WINDOW)
    windows = ids[: len(ids) // length * length].reshape(-1, length)
    rng = np.random.default_rng(_SEED)
    return rng.permutation(windows)[: MEASURED // length]


def is_as_long(tokens: int) -> bool:
    """Whether as many tokens are measured as `draw_windows` returns."""
    return MEASURED - _WINDOW < tokens <= MEASURED
