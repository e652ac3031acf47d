"""Collects the findings of a comparison of teaching methods."""

import statistics

from training.forgetting.contestants import CONTESTANTS
from training.forgetting.directory import ForgettingDirectory
from training.forgetting.recipe import ForgettingRecipe


def collect_findings(recipe: ForgettingRecipe) -> dict:
    """Reads the figures of all jobs."""
    directory = ForgettingDirectory(recipe.out)
    contestants = {}
    for key in recipe.methods:
        seeds = [
            directory.read(directory.trial(key, seed))["tried"]
            for seed in range(recipe.seeds)
        ]
        tried = [_over_seeds(each) for each in zip(*seeds)]
        merits = [merit(each) for each in tried]
        contestants[key] = {
            "title": CONTESTANTS[key].title,
            "tried": tried,
            "best": merits.index(max(merits)),
        }
    return {"contestants": contestants, "known_before": _known(recipe)}


def _known(recipe):
    if recipe.model is not None:
        return None
    directory = ForgettingDirectory(recipe.out)
    return [
        directory.read(directory.base(seed))["known"]
        for seed in range(recipe.seeds)
    ]


def _over_seeds(seeds):
    """The figures of one learning rate."""
    return {
        "rate": seeds[0]["rate"],
        "learned": statistics.median(map(learned, seeds)),
        "kept": statistics.median(map(kept, seeds)),
        "seeds": list(seeds),
    }


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
