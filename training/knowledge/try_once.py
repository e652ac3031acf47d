"""Runs a trial, unless its figures exist."""

from training.knowledge.learn import learn
from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.trials import Trial
from training.runs.files import write_json


def try_once(
    recipe: RecallRecipe, trial: Trial, rates: tuple[float, float]
) -> dict:
    """Returns a trial's figures. A finished trial is not repeated."""
    directory = RecallDirectory(recipe.out)
    path = directory.trial(trial)
    if not path.exists():
        times = directory.read_step_times()
        path.parent.mkdir(exist_ok=True)
        write_json(path, learn(recipe, trial, times, rates))
    return directory.read_trial(trial)
