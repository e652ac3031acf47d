"""How comparisons choose the best learning rate of a grid."""

from collections.abc import Sequence

# The seed of trials that choose a rate, and enter no table of results.
GRID_SEED = 1000

# The share of what is taught from which on it counts as taught.
_TAUGHT = 0.95


def best_rate(taught: Sequence[float], merits: Sequence[float]) -> int:
    """Returns the place of the best of some learning rates for teaching.

    It has the highest merit of those with which enough was known right after
    it was taught; if it was with none, of all.
    """
    keys = [
        (share >= _TAUGHT, merit)
        for share, merit in zip(taught, merits, strict=True)
    ]
    return keys.index(max(keys))


def marked(rate: float, rates: Sequence[float]) -> str:
    """Returns a best rate as text, marked if it is at the edge of its grid."""
    if len(rates) == 1:
        return f"{rate:g}"
    edges = {min(rates): " (lowest)", max(rates): " (highest)"}
    return f"{rate:g}{edges.get(rate, '')}"
