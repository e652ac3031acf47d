"""How good a learning rate is: what was learned, times what was kept."""

import math
import statistics


def learned(found: dict) -> float:
    """Returns the share of the new facts that is known.

    For a text, it is how far its perplexity has fallen towards the value at
    which the text counts as learned.
    """
    new = found["new"]
    if "facts" in new:
        return new["known_after"]
    after = new["perplexity_after"]
    if math.isnan(after):
        return -math.inf
    fallen = 1 - after / new["perplexity_before"]
    return min(1.0, fallen / (1 - new["fall"]))


def kept(found: dict) -> float:
    """Returns the share of the old facts that is still known.

    For a text, it is the perplexity before teaching divided by that after.
    """
    old = found["old"]
    return old["kept"] if "facts" in old else 1 / (1 + old["change"])


def right_after(found: dict) -> float:
    """Returns the share that was known right after its group was taught."""
    return statistics.mean(found["learned_then"])


def merit(learned: float, kept: float) -> float:
    """Returns the merit of a learning rate; higher is better.

    Learning without keeping is useless, and so is keeping without learning.
    """
    # Where a text has become worse, keeping little is no merit.
    return learned * kept if learned > 0 else learned
