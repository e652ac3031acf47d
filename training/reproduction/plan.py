"""The commands of the comparison, in order, and what each leaves."""

import dataclasses
import pathlib

from keras_pkm.runs.run_directory import RunDirectory
from training.reproduction.recipe import MODELS
from training.reproduction.recipe import ReproductionRecipe

FROZEN = ("values", "keys", "queries")


@dataclasses.dataclass(frozen=True)
class Job:
    """A command.

    Attributes:
        title: What it does.
        name: Of its log.
        script: The file in `training/`.
        args: Its arguments.
        result: The file that is there once it has ended.
        needs: The files that it needs.
        cost: About how long it takes, in the time of a train step.
    """

    title: str
    name: str
    script: str
    args: tuple[str, ...]
    result: pathlib.Path
    needs: tuple[pathlib.Path, ...]
    cost: float

    @property
    def is_done(self) -> bool:
        """Whether it has ended before."""
        return self.result.exists()


def plan_jobs(recipe: ReproductionRecipe) -> list[Job]:
    """Returns all commands, each behind those that it needs."""
    jobs = _train_and_measure(recipe, 0)
    for task in recipe.size.tasks:
        # What figure 3 shows is not in the tables.
        for key, model in MODELS.items():
            if model.in_table:
                jobs.append(_fine_tune(recipe, key, task, frozen=False))
                if model.has_memory:
                    jobs.append(_fine_tune(recipe, key, task, frozen=True))
    for seed in range(1, recipe.seeds):
        jobs += _train_and_measure(recipe, seed)
    return jobs


def _train_and_measure(recipe, seed):
    keys = [key for key in MODELS if seed in recipe.seeds_of(key)]
    jobs = [_pretrain(recipe, seed, key) for key in keys]
    if recipe.out_of_domain is not None:
        jobs += [_evaluate(recipe, seed, key) for key in keys]
    return jobs


def run_path(recipe: ReproductionRecipe, seed: int, key: str) -> pathlib.Path:
    """Returns the directory of a pretraining run."""
    return recipe.out / f"seed-{seed}" / key


def out_of_domain_path(
    recipe: ReproductionRecipe, seed: int, key: str
) -> pathlib.Path:
    """Returns the file of a model's figures on text of another kind."""
    return recipe.out / f"seed-{seed}" / f"{key}-out-of-domain.json"


def fine_tuning_path(
    recipe: ReproductionRecipe, key: str, task: str, frozen: bool
) -> pathlib.Path:
    """Returns the directory of a fine-tuning run."""
    kind = "frozen" if frozen else "updated"
    return recipe.out / "fine-tuned" / f"{key}-{task}-{kind}"


def _pretrain(recipe, seed, key):
    model, size = MODELS[key], recipe.size
    path = run_path(recipe, seed, key)
    args = [
        *size.pretraining.split(),
        *("--corpus", recipe.corpus, "--memory-block", model.block),
        *("--plain-steps", "0", "--steps", str(size.steps)),
        # Each run's stages take two of them.
        *("--seed", str(2 * seed), "--run-dir", str(path)),
    ]
    if recipe.validation is not None:
        args += ["--validation", recipe.validation]
    if recipe.data_dir is not None:
        args += ["--data-dir", recipe.data_dir]
    first = RunDirectory(run_path(recipe, 0, "a"))
    needs = []
    if path != first.root:
        args += ["--data-from", str(first.root)]
        # The last of it that is written.
        needs.append(first.packed_held_out)
    if model.goes_on:
        known = seed if seed in recipe.seeds_of("a") else 0
        start = run_path(recipe, known, "a")
        args += ["--init-from", str(start)]
        needs.append(start / "results.json")
    if model.fresh_feed_forward:
        args.append("--fresh-feed-forward")
    return Job(
        f"pretraining {key}, {model.title}, seed {seed}",
        f"pretraining-{key}-seed-{seed}",
        "pretrain.py",
        tuple(args),
        path / "results.json",
        tuple(needs),
        size.steps,
    )


def _evaluate(recipe, seed, key):
    run = run_path(recipe, seed, key)
    result = out_of_domain_path(recipe, seed, key)
    args = [
        *recipe.size.measuring.split(),
        *("--model", str(run), "--text", recipe.out_of_domain),
        *("--output", str(result)),
    ]
    if recipe.data_dir is not None:
        args += ["--data-dir", recipe.data_dir]
    return Job(
        f"measuring {key}, {MODELS[key].title}, seed {seed}, out of domain",
        f"measuring-{key}-seed-{seed}",
        "evaluate_mlm.py",
        tuple(args),
        result,
        (run / "results.json",),
        recipe.size.steps / 20,
    )


def _fine_tune(recipe, key, task, frozen):
    size = recipe.size
    path = fine_tuning_path(recipe, key, task, frozen)
    args = [
        *size.fine_tuning.split(),
        *("--task", task, "--model", str(run_path(recipe, 0, key))),
        *("--data", recipe.squad if task == "squad" else recipe.glue),
        *("--seeds", str(recipe.fine_tuning_seeds), "--run-dir", str(path)),
    ]
    if task in size.limits:
        args += ["--limit", str(size.limits[task])]
    if recipe.data_dir is not None:
        args += ["--data-dir", recipe.data_dir]
    if frozen:
        args += ["--freeze", *FROZEN]
    return Job(
        f"fine-tuning {key}, {MODELS[key].title}, on {task}"
        + (", memory frozen" if frozen else ""),
        f"fine-tuning-{path.name}",
        "finetune.py",
        tuple(args),
        path / "results.json",
        (run_path(recipe, 0, key) / "results.json",),
        recipe.fine_tuning_seeds * size.steps / 5,
    )
