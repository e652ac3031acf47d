"""The baseline perplexity of a model of word frequencies."""

from collections.abc import Iterable
from collections.abc import Sequence

import numpy as np

_ROWS_PER_READ = 2**14


def count_tokens(packed: np.ndarray, vocabulary_size: int) -> np.ndarray:
    """Returns how often each token occurs in packed rows, as int64."""
    counts = np.zeros(vocabulary_size, np.int64)
    for first in range(0, len(packed), _ROWS_PER_READ):
        rows = np.ravel(packed[first : first + _ROWS_PER_READ])
        counts += np.bincount(rows, minlength=vocabulary_size)
    return counts


def unigram_perplexity(
    token_counts: np.ndarray,
    held_out_batches: Iterable,
    special_token_ids: Sequence[int],
) -> float:
    """Returns the perplexity of a unigram model on the masked positions.

    p(token) = (count + 1) / (number of tokens + vocabulary_size), with the
    counts of the training tokens, special ones excluded, and
    perplexity = exp(Σ weight · -ln p(label) / Σ weight), in float64.
    """
    counts = token_counts.copy()
    counts[list(special_token_ids)] = 0
    surprise = np.log(counts.sum() + len(counts)) - np.log(counts + 1)

    total = 0.0
    total_weight = 0.0
    for _, label_ids, weights in held_out_batches:
        weights = np.asarray(weights, np.float64)
        total += np.sum(surprise[np.asarray(label_ids)] * weights)
        total_weight += np.sum(weights)
    if not total_weight:
        raise ValueError(
            "`held_out_batches` must contain a masked position. Received none"
        )
    return float(np.exp(total / total_weight))
