"""How good a learning rate is: what was learned, times what was kept."""


def learned(found: dict) -> float:
    """Returns the share of the new facts that is known.

    For a text, it is how far its perplexity has fallen towards the value at
    which the text counts as learned.
    """
    new = found["new"]
    if "facts" in new:
        return new["known_after"]
    fallen = 1 - new["perplexity_after"] / new["perplexity_before"]
    return min(1.0, fallen / (1 - new["fall"]))


def kept(found: dict) -> float:
    """Returns the share of the old facts that is still known.

    For a text, it is the perplexity before teaching divided by that after.
    """
    old = found["old"]
    return old["kept"] if "facts" in old else 1 / (1 + old["change"])


def merit(tried: dict) -> tuple[bool, float]:
    """Returns the merit of a learning rate, for comparison; higher is better.

    Learning without keeping is useless, and so is keeping without learning. A
    text whose perplexity has not fallen far enough does not count as taught,
    however much of the old text is kept.
    """
    of_text = "perplexity_after" in tried["seeds"][0]["new"]
    was_reached = not of_text or tried["learned"] >= 1
    learned, kept = tried["learned"], tried["kept"]
    # Where the text has become worse, keeping little is no merit.
    return was_reached, learned * kept if learned > 0 else learned
