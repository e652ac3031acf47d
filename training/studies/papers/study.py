"""A paper's comparison: its models are pretrained, measured, fine-tuned."""

from typing import Any

from training.corpora.corpus import open_corpus
from training.studies.jobs import Job
from training.studies.papers.figures import collect_figures
from training.studies.papers.papers import Options
from training.studies.papers.recipe import ReproductionRecipe
from training.studies.papers.report import make_report
from training.studies.report import Report
from training.studies.study import Study
from training.tasks.bad_rows import BadRows
from training.tasks.glue import GLUE
from training.tasks.glue import load_glue
from training.tasks.squad import load_squad

_FROZEN = ("values", "keys", "queries")


class PaperStudy(Study):
    """A paper's comparison, made of the other commands.

    - `seed-N/`: the pretraining runs, and their figures on other text;
    - `fine-tuned/`: the fine-tuning runs.
    """

    name = "comparison"
    recipe_type = ReproductionRecipe
    may_change = ("out", "data_dir", "processes", "seeds", "repeat", "tasks")
    recipe: ReproductionRecipe

    def check_inputs(self) -> None:
        """Checks the data of all commands that have not yet ended."""
        recipe = self.recipe
        left = {job.name for job in self.jobs() if not job.is_done}
        if not recipe.pretraining(0, "a").has_data:
            for text in filter(None, (recipe.text, recipe.validation)):
                open_corpus(text, recipe.data_dir)
        other = recipe.out_of_domain
        if other is not None and any(
            name.startswith("measuring-") for name in left
        ):
            open_corpus(other, recipe.data_dir)
        for task in recipe.size.tasks:
            if not any(f"-{task}-" in name for name in left):
                continue
            if task == "squad":
                load_squad(recipe.squad, recipe.data_dir, BadRows())
            else:
                load_glue(GLUE[task], recipe.glue, recipe.data_dir, BadRows())

    def jobs(self) -> list[Job]:
        """Returns all commands."""
        recipe = self.recipe
        jobs = self._train_and_measure(0)
        for task in recipe.size.tasks:
            # What figure 3 shows is not in the tables.
            for key, model in recipe.models.items():
                if model.in_table:
                    for kind in model.fine_tunings:
                        jobs.append(self._fine_tune(key, task, kind))
        for seed in range(1, recipe.seeds):
            jobs += self._train_and_measure(seed)
        return jobs

    def collect(self) -> dict:
        """Reads what the runs have left."""
        return collect_figures(self.recipe)

    def report(self, findings: dict) -> Report:
        """Returns the paper's tables and figures beside ours."""
        return make_report(self.recipe, findings)

    def _train_and_measure(self, seed: int) -> list[Job]:
        models = self.recipe.models
        keys = [key for key in models if seed in self.recipe.seeds_of(key)]
        jobs = [self._pretrain(seed, key) for key in keys]
        if self.recipe.out_of_domain is not None:
            jobs += [self._evaluate(seed, key) for key in keys]
        return jobs

    def _pretrain(self, seed: int, key: str) -> Job:
        recipe, model = self.recipe, self.recipe.models[key]
        run, first = recipe.pretraining(seed, key), recipe.pretraining(0, "a")
        options = {
            **recipe.size.pretraining,
            **model.pretraining,
            "text": recipe.text,
            "validation": recipe.validation,
            **recipe.data_dir_for(recipe.text, recipe.validation),
            "memory_block": model.block,
            "fresh_feed_forward": model.fresh_feed_forward,
            "plain_steps": 0,
            "steps": recipe.size.steps,
            # Each run's stages take two of them.
            "seed": 2 * seed,
            "out": run.root,
        }
        needs = []
        if run.root != first.root:
            options["data_from"] = first.root
            # The last of it that is written.
            needs.append(first.packed_held_out)
        if model.goes_on:
            known = seed if seed in recipe.seeds_of("a") else 0
            start = recipe.pretraining(known, "a")
            options["init_from"] = start.root
            needs.append(start.results)
        return Job(
            f"pretraining {key}, {model.title}, seed {seed}",
            f"pretraining-{key}-seed-{seed}",
            "pretrain.py",
            as_flags(options),
            run.results,
            tuple(needs),
            recipe.size.steps,
        )

    def _evaluate(self, seed: int, key: str) -> Job:
        recipe, run = self.recipe, self.recipe.pretraining(seed, key)
        result = recipe.measured(seed, key)
        options = {
            **recipe.size.measuring,
            "model": run.root,
            "text": recipe.out_of_domain,
            "out": result,
            **recipe.data_dir_for(recipe.out_of_domain),
        }
        title = recipe.models[key].title
        return Job(
            f"measuring {key}, {title}, seed {seed}, out of domain",
            f"measuring-{key}-seed-{seed}",
            "evaluate_mlm.py",
            as_flags(options),
            result,
            (run.results,),
            recipe.size.steps / 20,
        )

    def _fine_tune(self, key: str, task: str, kind: str) -> Job:
        recipe, frozen = self.recipe, kind == "frozen"
        run = recipe.fine_tuning(key, task, kind)
        model = recipe.pretraining(0, key)
        kind_of_data = "squad" if task == "squad" else "glue"
        source = getattr(recipe, kind_of_data)
        options = {
            **recipe.size.fine_tuning,
            "task": task,
            "model": model.root,
            kind_of_data: source,
            "seeds": recipe.fine_tuning_seeds,
            "limit": recipe.size.limits.get(task),
            **recipe.data_dir_for(source),
            "freeze": _FROZEN if frozen else None,
            "out": run.root,
        }
        return Job(
            f"fine-tuning {key}, {recipe.models[key].title}, on {task}"
            + (", memory frozen" if frozen else ""),
            f"fine-tuning-{run.root.name}",
            "finetune.py",
            as_flags(options),
            run.results,
            (model.results,),
            recipe.fine_tuning_seeds * recipe.size.steps / 5,
        )


def as_flags(options: Options) -> tuple[str, ...]:
    """Returns the flags of a recipe's fields; `None` and `False` have none."""
    flags: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        flags.append(f"--{name.replace('_', '-')}")
        if value is not True:
            values: Any = value if isinstance(value, tuple) else (value,)
            flags += [str(each) for each in values]
    return tuple(flags)
