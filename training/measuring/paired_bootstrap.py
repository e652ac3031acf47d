"""Estimates how certain the difference of two perplexities is."""

import dataclasses
import math

import numpy as np

# Number of sequences that are drawn together, as neighbours belong to the same
# document; fewer if there would be fewer blocks than that.
_BLOCK, _BLOCKS = 64, 20
_SAMPLES = 2000


def block_starts(count: int) -> np.ndarray:
    """Returns where the blocks of some sequences begin."""
    return np.arange(0, count, min(_BLOCK, max(1, count // _BLOCKS)))


@dataclasses.dataclass(frozen=True)
class Difference:
    """The difference of two models' mean -ln p on the same masked tokens."""

    # The second model's mean minus the first model's, in nats.
    mean: float
    # The lower end of the 95 % interval.
    low: float
    # The upper end of the interval.
    high: float


def paired_difference(
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    seed: int = 0,
) -> Difference:
    """Compares two models by a bootstrap over blocks of sequences.

    It measures how the difference varies with the text, not with the seed of
    the training.
    """
    (nll, tokens), (other, other_tokens) = first, second
    if not np.array_equal(tokens, other_tokens):
        raise ValueError(
            "`first` and `second` must be of the same sequences. Received: "
            f"{len(tokens)} and {len(other_tokens)} sequences, of "
            f"{tokens.sum():.0f} and {other_tokens.sum():.0f} tokens."
        )
    if len(nll) < 2:
        # One sequence says nothing about others.
        mean = float((other - nll).sum() / tokens.sum())
        return Difference(mean, -math.inf, math.inf)
    starts = block_starts(len(nll))
    difference = np.add.reduceat(other - nll, starts)
    weight = np.add.reduceat(tokens, starts)
    blocks = np.random.default_rng(seed).integers(
        0, len(starts), (_SAMPLES, len(starts))
    )
    samples = difference[blocks].sum(1) / weight[blocks].sum(1)
    low, high = np.quantile(samples, (0.025, 0.975))
    return Difference(
        float(difference.sum() / weight.sum()), float(low), float(high)
    )
