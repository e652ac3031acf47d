"""Which learning rates a contender takes: the best ones of a small grid."""

from keras_pkm.runs.json_files import write_json
from training.knowledge.learn import learn
from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.trials import Trial
from training.knowledge.trials import grid_trials
from training.knowledge.trials import rate_pairs

# No other rates are tried once some give this recall: they cannot be better.
ENOUGH = 0.999


def find_rates(recipe: RecallRecipe, key: str) -> dict:
    """Trains a contender with one pair of rates after the other.

    A trial that was finished before is not repeated.

    Args:
        recipe: `RecallRecipe`.
        key: The contender.

    Returns:
        The pair with which it knew most, as JSON takes it.
    """
    directory = RecallDirectory(recipe.out)
    times = directory.read_step_times()
    recalls = {}
    for trial in grid_trials(recipe, key):
        path = directory.trial(trial)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            write_json(path, learn(recipe, trial, times, trial.rates))
        recalls[trial.rates] = directory.read_trial(trial)["recall"]
        if recalls[trial.rates] >= ENOUGH:
            break
    return {"rates": list(max(recalls, key=recalls.get))}


def best_rates(recipe: RecallRecipe, key: str) -> tuple[float, float]:
    """Returns the learning rates that a contender takes.

    They are those of all but the memory values, and of these.

    Args:
        recipe: `RecallRecipe`, whose grid has been tried.
        key: The contender.
    """
    pairs = rate_pairs(recipe, key)
    if len(pairs) == 1:
        return pairs[0]
    return RecallDirectory(recipe.out).read_rates(key)


def tried_trials(recipe: RecallRecipe, key: str) -> list[Trial]:
    """Returns the trials of a contender's grid that were needed."""
    directory = RecallDirectory(recipe.out)
    trials = grid_trials(recipe, key)
    return [trial for trial in trials if directory.trial(trial).exists()]
