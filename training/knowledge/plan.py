"""The jobs of a comparison of recall, and their results."""

import pathlib

from training.commands.run_jobs import Job
from training.knowledge.rate_grid import best_rates
from training.knowledge.rate_grid import find_rates
from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.step_times import measure_step_times
from training.knowledge.step_times import measure_table_times
from training.knowledge.sweep import name_of_series
from training.knowledge.sweep import try_series
from training.knowledge.trials import grid_trials
from training.knowledge.trials import main_trials
from training.knowledge.trials import sweep_series
from training.knowledge.try_once import try_once
from training.runs.files import write_json

_STEP_TIMES = "step-times"
_TABLE_STEP_TIMES = "table-step-times"
_RATES = "rates-"
_SWEEP = "sweep-"
# The cost of timing, in seconds of training.
_COST = 60.0


def plan_jobs(recipe: RecallRecipe) -> list[Job]:
    """Returns all jobs, each after those that it needs."""
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

    def needs(key):
        return (*timed, rates[key]) if key in rates else timed

    main = main_trials(recipe)
    for trial in main:
        title = trial.name.replace("-", " ")
        result = directory.trial(trial)
        needed = needs(trial.key)
        jobs.append(job(title, trial.name, result, needed, recipe.seconds))
    for series in sweep_series(recipe):
        name = name_of_series(series)
        title = f"sweep of {series[0].model_name.replace('-', ' ')}"
        # Both would train the same model at the same time.
        shared = [directory.trial(each) for each in series if each in main]
        needed = (*needs(series[0].key), *shared)
        # Bisection makes about as many trials as their number has bits.
        cost = max(1, len(series).bit_length() - len(shared)) * recipe.seconds
        result = directory.series(name)
        jobs.append(job(title, _SWEEP + name, result, needed, cost))
    return jobs


def run_job(out: pathlib.Path, name: str) -> None:
    """Runs one of the jobs of a directory, and writes its findings."""
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
    elif name.startswith(_SWEEP):
        name = name.removeprefix(_SWEEP)
        found, path = try_series(recipe, name), directory.series(name)
    else:
        (trial,) = (each for each in main_trials(recipe) if each.name == name)
        try_once(recipe, trial, best_rates(recipe, trial.key))
        return
    path.parent.mkdir(exist_ok=True)
    write_json(path, found if isinstance(found, dict) else found.as_json())
