"""Chooses the learning rates of a contender from a small grid."""

from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.trials import Trial
from training.knowledge.trials import grid_trials
from training.knowledge.trials import rate_pairs
from training.knowledge.try_once import try_once

# Once a pair of rates reaches this recall, no others are tried: they could not
# be better.
ENOUGH = 0.999


def find_rates(recipe: RecallRecipe, key: str) -> dict:
    """Trains a contender with one pair of rates after another.

    Trials that are finished are not repeated.
    """
    recalls = {}
    for trial in grid_trials(recipe, key):
        recalls[trial.rates] = try_once(recipe, trial, trial.rates)["recall"]
        if recalls[trial.rates] >= ENOUGH:
            break
    return {"rates": list(max(recalls, key=recalls.get))}


def best_rates(recipe: RecallRecipe, key: str) -> tuple[float, float]:
    """Returns the two learning rates of a contender.

    The first is for everything but the memory values, the second for these.
    """
    pairs = rate_pairs(recipe, key)
    if len(pairs) == 1:
        return pairs[0]
    return RecallDirectory(recipe.out).read_rates(key)


def tried_trials(recipe: RecallRecipe, key: str) -> list[Trial]:
    """Returns the trials of a contender's grid that were made."""
    directory = RecallDirectory(recipe.out)
    trials = grid_trials(recipe, key)
    return [trial for trial in trials if directory.trial(trial).exists()]
