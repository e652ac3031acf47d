"""The jobs of a comparison of recall: what each does, and what it leaves."""

import pathlib

from keras_pkm.runs.json_files import write_json
from training.commands.run_jobs import Job
from training.knowledge.learn import learn
from training.knowledge.rate_grid import best_rates
from training.knowledge.rate_grid import find_rates
from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.step_times import measure_step_times
from training.knowledge.step_times import measure_table_times
from training.knowledge.trials import grid_trials
from training.knowledge.trials import shown_trials

_STEP_TIMES = "step-times"
_TABLE_STEP_TIMES = "table-step-times"
_RATES = "rates-"
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
    rates = {}
    for key in recipe.contenders:
        if grid := grid_trials(recipe, key):
            result = directory.rates(key)
            title = f"learning rates of {key.replace('-', ' ')}"
            cost = len(grid) * recipe.seconds
            jobs.append(job(title, _RATES + key, result, timed, cost))
            rates[key] = result
    for trial in shown_trials(recipe):
        needs = (*timed, rates[trial.key]) if trial.key in rates else timed
        title = trial.name.replace("-", " ")
        result = directory.trial(trial)
        jobs.append(job(title, trial.name, result, needs, recipe.seconds))
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
    elif name.startswith(_RATES):
        key = name.removeprefix(_RATES)
        found, path = find_rates(recipe, key), directory.rates(key)
    else:
        (trial,) = (each for each in shown_trials(recipe) if each.name == name)
        path = directory.trial(trial)
        times = directory.read_step_times()
        found = learn(recipe, trial, times, best_rates(recipe, trial.key))
    path.parent.mkdir(exist_ok=True)
    write_json(path, found if isinstance(found, dict) else found.as_json())
