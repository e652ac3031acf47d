"""Finds the largest number of facts that a model learns, by bisection."""

from training.knowledge.rate_grid import best_rates
from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.trials import Trial
from training.knowledge.trials import sweep_series
from training.knowledge.try_once import try_once

# The recall from which on a number of facts counts as learned.
LEARNED = 0.95


def name_of_series(series: list[Trial]) -> str:
    """Returns the name of the series of one model's trials."""
    numbers = "-".join(str(trial.num_facts) for trial in series)
    return f"{series[0].model_name}-{numbers}-facts"


def try_series(recipe: RecallRecipe, name: str) -> dict:
    """Trains a model until it is known which number of facts it learns."""
    directory = RecallDirectory(recipe.out)
    (series,) = (
        each for each in sweep_series(recipe) if name_of_series(each) == name
    )
    recalls = {
        trial: directory.read_trial(trial)["recall"]
        for trial in series
        if directory.trial(trial).exists()
    }
    first = recipe.num_random_facts
    while (trial := next_trial(series, recalls, first)) is not None:
        rates = best_rates(recipe, trial.key)
        recalls[trial] = try_once(recipe, trial, rates)["recall"]
    return {"facts": sorted(trial.num_facts for trial in recalls)}


def next_trial(
    series: list[Trial], recalls: dict[Trial, float], first: int
) -> Trial | None:
    """Returns the trial to make next, or `None` if there is nothing to find.

    It is the middle one of those between the largest number of facts that is
    known to be learned and the smallest one that is known not to be.
    """
    if not recalls and (begin := [t for t in series if t.num_facts == first]):
        return begin[0]
    learned = [
        t.num_facts for t, recall in recalls.items() if recall >= LEARNED
    ]
    missed = [t.num_facts for t, recall in recalls.items() if recall < LEARNED]
    least = max(learned, default=0)
    most = min(missed, default=float("inf"))
    open_ = [trial for trial in series if least < trial.num_facts < most]
    return open_[len(open_) // 2] if open_ else None


def tried_series(recipe: RecallRecipe) -> list[Trial]:
    """Returns the trials of the sweep that were made."""
    directory = RecallDirectory(recipe.out)
    return [
        trial
        for series in sweep_series(recipe)
        for trial in series
        if directory.trial(trial).exists()
    ]
