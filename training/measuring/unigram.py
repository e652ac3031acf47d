"""The perplexity that a model must beat: that of word frequencies alone."""

from collections.abc import Iterable
from collections.abc import Sequence

import numpy as np

_ROWS_PER_READ = 2**14


def unigram_perplexity(
    train_packed: np.ndarray,
    held_out_batches: Iterable,
    vocabulary_size: int,
    special_token_ids: Sequence[int],
) -> float:
    """Returns the perplexity of a unigram model on the masked positions.

    p(token) = (count + 1) / (number of tokens + vocabulary_size), with the
    counts of the training tokens, special ones excluded, and
    perplexity = exp(Σ weight · -ln p(label) / Σ weight), in float64.

    Args:
        train_packed: int32 array or memory map of token ids.
        held_out_batches: iterable of `(features, label_ids, weights)`, the
            batches on which the model is evaluated.
        vocabulary_size: int.
        special_token_ids: ids that are not counted.

    Raises:
        ValueError: nothing is masked in the batches.
    """
    counts = np.zeros(vocabulary_size, np.int64)
    for first in range(0, len(train_packed), _ROWS_PER_READ):
        rows = np.ravel(train_packed[first : first + _ROWS_PER_READ])
        counts += np.bincount(rows, minlength=vocabulary_size)
    counts[list(special_token_ids)] = 0
    surprise = np.log(counts.sum() + vocabulary_size) - np.log(counts + 1)

    total = 0.0
    total_weight = 0.0
    for _, label_ids, weights in held_out_batches:
        weights = np.asarray(weights, np.float64)
        total += np.sum(surprise[np.asarray(label_ids)] * weights)
        total_weight += np.sum(weights)
    if not total_weight:
        raise ValueError(
            "`held_out_batches` must hold a masked position. Received none"
        )
    return float(np.exp(total / total_weight))
