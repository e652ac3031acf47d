"""The commands of the comparison, in order, and what each leaves."""

from training.commands.run_jobs import Job
from training.reproduction.comparison_directory import ComparisonDirectory
from training.reproduction.recipe import ReproductionRecipe

FROZEN = ("values", "keys", "queries")


def plan_jobs(recipe: ReproductionRecipe) -> list[Job]:
    """Returns all commands, each behind those that it needs."""
    jobs = _train_and_measure(recipe, 0)
    for task in recipe.size.tasks:
        # What figure 3 shows is not in the tables.
        for key, model in recipe.models.items():
            if model.in_table:
                jobs.append(_fine_tune(recipe, key, task, frozen=False))
                if model.has_memory:
                    jobs.append(_fine_tune(recipe, key, task, frozen=True))
    for seed in range(1, recipe.seeds):
        jobs += _train_and_measure(recipe, seed)
    return jobs


def _train_and_measure(recipe, seed):
    keys = [key for key in recipe.models if seed in recipe.seeds_of(key)]
    jobs = [_pretrain(recipe, seed, key) for key in keys]
    if recipe.out_of_domain is not None:
        jobs += [_evaluate(recipe, seed, key) for key in keys]
    return jobs


def _pretrain(recipe, seed, key):
    model, size = recipe.models[key], recipe.size
    directory = ComparisonDirectory(recipe.out)
    run = directory.pretraining(seed, key)
    args = [
        *size.pretraining.split(),
        *model.flags.split(),
        *("--corpus", recipe.corpus, "--memory-block", model.block),
        *("--plain-steps", "0", "--steps", str(size.steps)),
        # Each run's stages take two of them.
        *("--seed", str(2 * seed), "--run-dir", str(run.root)),
    ]
    if recipe.validation is not None:
        args += ["--validation", recipe.validation]
    if recipe.data_dir is not None:
        args += ["--data-dir", recipe.data_dir]
    first = directory.pretraining(0, "a")
    needs = []
    if run.root != first.root:
        args += ["--data-from", str(first.root)]
        # The last of it that is written.
        needs.append(first.packed_held_out)
    if model.goes_on:
        known = seed if seed in recipe.seeds_of("a") else 0
        start = directory.pretraining(known, "a")
        args += ["--init-from", str(start.root)]
        needs.append(start.results)
    if model.fresh_feed_forward:
        args.append("--fresh-feed-forward")
    return Job(
        f"pretraining {key}, {model.title}, seed {seed}",
        f"pretraining-{key}-seed-{seed}",
        "pretrain.py",
        tuple(args),
        run.results,
        tuple(needs),
        size.steps,
    )


def _evaluate(recipe, seed, key):
    directory = ComparisonDirectory(recipe.out)
    run = directory.pretraining(seed, key)
    result = directory.out_of_domain(seed, key)
    title = recipe.models[key].title
    args = [
        *recipe.size.measuring.split(),
        *("--model", str(run.root), "--text", recipe.out_of_domain),
        *("--output", str(result)),
    ]
    if recipe.data_dir is not None:
        args += ["--data-dir", recipe.data_dir]
    return Job(
        f"measuring {key}, {title}, seed {seed}, out of domain",
        f"measuring-{key}-seed-{seed}",
        "evaluate_mlm.py",
        tuple(args),
        result,
        (run.results,),
        recipe.size.steps / 20,
    )


def _fine_tune(recipe, key, task, frozen):
    size = recipe.size
    directory = ComparisonDirectory(recipe.out)
    model = directory.pretraining(0, key)
    run = directory.fine_tuning(key, task, frozen)
    args = [
        *size.fine_tuning.split(),
        *("--task", task, "--model", str(model.root)),
        *("--data", recipe.squad if task == "squad" else recipe.glue),
        *("--seeds", str(recipe.fine_tuning_seeds), "--run-dir", str(run.root)),
    ]
    if task in size.limits:
        args += ["--limit", str(size.limits[task])]
    if recipe.data_dir is not None:
        args += ["--data-dir", recipe.data_dir]
    if frozen:
        args += ["--freeze", *FROZEN]
    return Job(
        f"fine-tuning {key}, {recipe.models[key].title}, on {task}"
        + (", memory frozen" if frozen else ""),
        f"fine-tuning-{run.root.name}",
        "finetune.py",
        tuple(args),
        run.results,
        (model.results,),
        recipe.fine_tuning_seeds * size.steps / 5,
    )
