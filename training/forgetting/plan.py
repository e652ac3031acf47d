"""The jobs of a comparison of teaching methods."""

import pathlib

from training.commands.run_jobs import Job
from training.forgetting.contestants import CONTESTANTS
from training.forgetting.directory import ForgettingDirectory
from training.forgetting.recipe import ForgettingRecipe
from training.forgetting.settings import learn_facts
from training.forgetting.trial import try_contestant
from training.runs.files import write_json

_BASE = "base"
# The approximate cost of a job.
_COST = 90.0
_COST_OF_A_RATE = 25.0


def plan_jobs(recipe: ForgettingRecipe) -> list[Job]:
    """Returns all jobs, each after those that it needs."""
    directory = ForgettingDirectory(recipe.out)

    def job(key, seed, title, result, needs, cost):
        name = f"{key}-seed-{seed}"
        args = ("--out", str(recipe.out), "--key", key, "--seed", str(seed))
        script = "teach_job.py"
        return Job(title, name, script, args, result, needs, cost)

    jobs = []
    for seed in range(recipe.seeds):
        needs = ()
        if recipe.model is None:
            base = directory.base(seed)
            title = f"old facts, seed {seed}"
            jobs.append(job(_BASE, seed, title, base, (), _COST))
            needs = (base,)
        for key in recipe.methods:
            contestant = CONTESTANTS[key]
            jobs.append(
                job(
                    key,
                    seed,
                    f"{contestant.title}, seed {seed}",
                    directory.trial(key, seed),
                    needs,
                    _COST_OF_A_RATE * len(contestant.rates(recipe)),
                )
            )
    return jobs


def run_job(out: pathlib.Path, key: str, seed: int) -> None:
    """Runs one of the jobs of a directory, and writes its findings."""
    directory = ForgettingDirectory(out)
    recipe = directory.read_recipe()
    if key == _BASE:
        path, found = directory.base(seed), learn_facts(recipe, seed)
    else:
        path = directory.trial(key, seed)
        found = try_contestant(recipe, key, seed)
    path.parent.mkdir(exist_ok=True)
    write_json(path, found)
