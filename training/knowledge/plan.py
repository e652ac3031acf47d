"""The jobs of a comparison of recall: what each does, and what it leaves."""

import pathlib

from keras_pkm.runs.json_files import write_json
from training.commands.run_jobs import Job
from training.knowledge.learn import learn
from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.step_times import measure_step_times
from training.knowledge.step_times import measure_table_times
from training.knowledge.trials import all_trials
from training.knowledge.trials import grid_trials
from training.knowledge.trials import rate_pairs

_STEP_TIMES = "step-times"
_TABLE_STEP_TIMES = "table-step-times"
# Of timing, in seconds of training.
_COST = 60.0


def plan_jobs(recipe: RecallRecipe) -> list[Job]:
    """Returns all jobs, each behind those that it needs."""
    directory = RecallDirectory(recipe.out)

    def job(title, name, result, needs, cost, alone=False):
        args = ("--out", str(recipe.out), "--job", name)
        script = "recall_job.py"
        return Job(title, name, script, args, result, needs, cost, alone)

    timed = (directory.step_times,)
    jobs = [
        job("step times", _STEP_TIMES, directory.step_times, (), _COST, True)
    ]
    if recipe.sweep == "facts":
        result = directory.table_step_times
        title = "step times of other tables"
        jobs.append(job(title, _TABLE_STEP_TIMES, result, timed, _COST, True))
        timed = (*timed, result)
    for trial in all_trials(recipe):
        needs = list(timed)
        if trial.rates is None:
            needs += map(directory.trial, grid_trials(recipe, trial.key))
        title = trial.name.replace("-", " ")
        result = directory.trial(trial)
        jobs.append(
            job(title, trial.name, result, tuple(needs), recipe.seconds)
        )
    return jobs


def run_job(out: pathlib.Path, name: str) -> None:
    """Does one of the jobs of a directory, and writes what it has found.

    Args:
        out: The directory, which contains the recipe.
        name: The job's name.
    """
    directory = RecallDirectory(out)
    recipe = directory.read_recipe()
    if name == _STEP_TIMES:
        found, path = measure_step_times(recipe), directory.step_times
    elif name == _TABLE_STEP_TIMES:
        found = measure_table_times(recipe, directory.read_step_times())
        path = directory.table_step_times
    else:
        (trial,) = (each for each in all_trials(recipe) if each.name == name)
        path = directory.trial(trial)
        found = learn(
            recipe,
            trial,
            directory.read_step_times(),
            trial.rates or best_rates(recipe, trial.key),
        )
    path.parent.mkdir(exist_ok=True)
    write_json(path, found if isinstance(found, dict) else found.as_json())


def best_rates(recipe: RecallRecipe, key: str) -> tuple[float, float]:
    """Returns the rates with which a contender knew most in the grid.

    Args:
        recipe: `RecallRecipe`, whose grid has been tried.
        key: The contender.
    """
    directory = RecallDirectory(recipe.out)
    recalls = {
        trial.rates: directory.read_trial(trial)["recall"]
        for trial in grid_trials(recipe, key)
    }
    pairs = rate_pairs(recipe, key)
    return max(pairs, key=lambda pair: recalls.get(pair, 0))
