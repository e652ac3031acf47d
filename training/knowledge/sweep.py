"""Trains a model on growing numbers of facts, until it knows less than half."""

from training.knowledge.rate_grid import best_rates
from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.trials import Trial
from training.knowledge.trials import sweep_series
from training.knowledge.try_once import try_once

# After a recall below this, no larger numbers of facts are tried.
TOO_MANY = 0.5


def name_of_series(series: list[Trial]) -> str:
    """Returns the name of the series of one model's trials."""
    numbers = "-".join(str(trial.num_facts) for trial in series)
    return f"{series[0].model_name}-{numbers}-facts"


def try_series(recipe: RecallRecipe, name: str) -> dict:
    """Trains a model on growing numbers of facts.

    Args:
        recipe: `RecallRecipe`, whose learning rates have been chosen.
        name: The name of the series.

    Returns:
        The numbers of facts that were tried, serializable as JSON.
    """
    (series,) = (
        each for each in sweep_series(recipe) if name_of_series(each) == name
    )
    tried = []
    for trial in series:
        rates = best_rates(recipe, trial.key)
        tried.append(trial.num_facts)
        if try_once(recipe, trial, rates)["recall"] < TOO_MANY:
            break
    return {"facts": tried}


def tried_series(recipe: RecallRecipe) -> list[Trial]:
    """Returns the trials of the sweep that were made."""
    directory = RecallDirectory(recipe.out)
    return [
        trial
        for series in sweep_series(recipe)
        for trial in series
        if directory.trial(trial).exists()
    ]
