"""How sure a difference of two perplexities is."""

import dataclasses

import numpy as np

# Sequences that are drawn together: neighbours are of the same document.
_BLOCK = 64
_SAMPLES = 2000


@dataclasses.dataclass(frozen=True)
class Difference:
    """Of the mean -ln p of two models on the same masked tokens.

    Attributes:
        mean: The second one's less the first one's, in nats.
        low: The lower end of its 95 % interval.
        high: The upper end.
    """

    mean: float
    low: float
    high: float


def paired_difference(
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    seed: int = 0,
) -> Difference:
    """Compares two models by a bootstrap over blocks of sequences.

    It tells how the difference depends on the text, not on the training's seed.

    Args:
        first: pair of float arrays of shape `(sequences,)`, the sums of -ln p
            and the numbers of predicted tokens.
        second: the same of the other model.
        seed: Of the samples.

    Raises:
        ValueError: they were not measured on the same tokens.
    """
    (nll, tokens), (other, other_tokens) = first, second
    if not np.array_equal(tokens, other_tokens):
        raise ValueError(
            "`first` and `second` must be of the same sequences. Received: "
            f"{len(tokens)} and {len(other_tokens)} sequences, of "
            f"{tokens.sum():.0f} and {other_tokens.sum():.0f} tokens."
        )
    starts = np.arange(0, len(nll), _BLOCK)
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
