"""What models learn, and what they forget, with several teaching methods."""

import functools
import pathlib
import statistics
import time
from collections.abc import Sequence

from keras_pkm.teaching.memory_teacher import MemoryTeacher
from training.runs.files import read_json
from training.runs.user_error import UserError
from training.studies.best_rate import GRID_SEED
from training.studies.best_rate import best_rate
from training.studies.forgetting.candidates import CANDIDATES
from training.studies.forgetting.merit import kept
from training.studies.forgetting.merit import learned
from training.studies.forgetting.merit import merit
from training.studies.forgetting.merit import right_after
from training.studies.forgetting.recipe import ForgettingRecipe
from training.studies.forgetting.report import make_report
from training.studies.forgetting.settings import check_setting
from training.studies.forgetting.settings import learn_facts
from training.studies.forgetting.settings import open_setting
from training.studies.jobs import Job
from training.studies.report import Report
from training.studies.study import Study
from training.teaching.methods import make_teacher
from training.teaching.teach import teach

# The approximate cost of a job.
_COST = 90.0
_COST_OF_A_RATE = 25.0


class ForgettingStudy(Study):
    """What models learn, and what they forget, with several teaching methods.

    - `bases/`: for each seed, the model that knows the old facts, the share of
      facts that it knows, and how often its slots are read;
    - `rates/`: for each method, the figures with each learning rate, with a
      seed of its own;
    - `trials/`: for each method and seed, the figures with the best of them.
    """

    name = "forgetting"
    recipe_type = ForgettingRecipe
    may_change = ("out", "methods", "seeds", "processes")
    recipe: ForgettingRecipe

    def base(self, seed: int) -> pathlib.Path:
        """Returns the file of the figures of a seed's model."""
        return self.root / "bases" / f"seed-{seed}.json"

    def grid(self, key: str) -> pathlib.Path:
        """Returns the file of a method's figures with each learning rate."""
        return self.root / "rates" / f"{key}.json"

    def trial(self, key: str, seed: int) -> pathlib.Path:
        """Returns the file of a method's figures with the best rate."""
        return self.root / "trials" / f"{key}-seed-{seed}.json"

    def rates(self, key: str) -> tuple[float, ...]:
        """Returns the learning rates to try with a method."""
        return getattr(self.recipe, CANDIDATES[key].rates_field)

    def check_inputs(self) -> None:
        """Opens the model, the materials, and the trials that are there."""
        check_setting(self.recipe)
        for key in self.recipe.methods:
            for seed in range(self.recipe.seeds):
                if self.trial(key, seed).exists():
                    self._read_trial(key, seed)

    def jobs(self) -> list[Job]:
        """Returns jobs for the old facts, the learning rates and the trials."""
        methods, job = self.recipe.methods, self.study_job
        seeds = range(self.recipe.seeds)
        searched = [key for key in methods if len(self.rates(key)) > 1]
        jobs, bases = [], {}
        if self.recipe.model is None:
            for seed in (*([GRID_SEED] if searched else []), *seeds):
                bases[seed] = (self.base(seed),)
                jobs.append(
                    job(
                        f"old facts, seed {seed}",
                        f"base-seed-{seed}",
                        self.base(seed),
                        functools.partial(learn_facts, self.recipe, seed),
                        cost=_COST,
                    )
                )
        grids: dict[str, tuple[pathlib.Path, ...]] = {}
        for key in searched:
            grids[key] = (self.grid(key),)
            jobs.append(
                job(
                    f"learning rates of {CANDIDATES[key].title}",
                    f"rates-{key}",
                    self.grid(key),
                    functools.partial(self.try_all, key),
                    needs=bases.get(GRID_SEED, ()),
                    cost=_COST_OF_A_RATE * len(self.rates(key)),
                )
            )
        jobs += [
            job(
                f"{CANDIDATES[key].title}, seed {seed}",
                f"{key}-seed-{seed}",
                self.trial(key, seed),
                functools.partial(self.try_best, key, seed),
                needs=(*bases.get(seed, ()), *grids.get(key, ())),
                cost=_COST_OF_A_RATE,
            )
            for key in methods
            for seed in seeds
        ]
        return jobs

    def try_all(self, key: str) -> dict:
        """Tries all learning rates of a method."""
        tried = try_rates(self.recipe, key, GRID_SEED, self.rates(key))
        return {"seed": GRID_SEED, "tried": tried}

    def try_best(self, key: str, seed: int) -> dict:
        """Tries the best learning rate of a method, with another seed."""
        rate = self.rates(key)[self.best(self.read_grid(key))]
        (found,) = try_rates(self.recipe, key, seed, [rate])
        return found

    def read_grid(self, key: str) -> list[dict]:
        """Returns a method's figures, one dict for each learning rate.

        They are empty if there is only one rate.
        """
        if len(self.rates(key)) == 1:
            return []
        tried = read_json(self.grid(key), "--out")["tried"]
        return [
            {
                "right_after": right_after(found),
                "learned": learned(found),
                "kept": kept(found),
                **found,
            }
            for found in tried
        ]

    @staticmethod
    def best(tried: list[dict]) -> int:
        """Returns the place of the best of some rates."""
        if not tried:
            return 0
        return best_rate(
            [each["right_after"] for each in tried],
            [merit(each["learned"], each["kept"]) for each in tried],
        )

    def collect(self) -> dict:
        """Reads the figures of all jobs."""
        seeds = range(self.recipe.seeds)
        candidates = {}
        for key in self.recipe.methods:
            found = [self._read_trial(key, seed) for seed in seeds]
            candidates[key] = {
                "title": CANDIDATES[key].title,
                "rates": list(self.rates(key)),
                "tried": self.read_grid(key),
                "rate": found[0]["rate"],
                "right_after": statistics.median(map(right_after, found)),
                "learned": statistics.median(map(learned, found)),
                "kept": statistics.median(map(kept, found)),
                "seeds": found,
            }
        known = None
        if self.recipe.model is None:
            known = [
                read_json(self.base(seed), "--out")["known"] for seed in seeds
            ]
        return {"candidates": candidates, "known_before": known}

    def _read_trial(self, key: str, seed: int) -> dict:
        """The figures of a method with its best learning rate."""
        path = self.trial(key, seed)
        found = read_json(path, "--out")
        if "learned_then" not in found:
            raise UserError(
                f"--out must have trials of this version, but '{path}' does "
                "not say what was known right after a group: delete it, and "
                "repeat the command"
            )
        return found

    def report(self, findings: dict) -> Report:
        """Returns the report on the findings."""
        return make_report(self.recipe, findings)


def try_rates(
    recipe: ForgettingRecipe, key: str, seed: int, rates: Sequence[float]
) -> list[dict]:
    """Teaches a model with one method, once with each learning rate."""
    candidate = CANDIDATES[key]
    tried = []
    with open_setting(recipe, seed) as setting:
        importance = None
        if candidate.method == "slots":
            importance = candidate.scores(setting.measure_importance(), seed)
        for rate in rates:
            task = setting.load()
            teacher = make_teacher(
                task,
                candidate.method,
                learning_rate=rate,
                rule=candidate.rule,
                slots=recipe.slots,
                importance=importance,
                replayed=setting.old.samples(
                    setting.batch_size, seed, candidate.replayed
                ),
                **candidate.options,
            )
            began = time.perf_counter()
            found = teach(
                task,
                teacher,
                new=setting.new,
                old=setting.old,
                steps=recipe.steps,
            )
            found["seconds"] = time.perf_counter() - began
            if isinstance(teacher, MemoryTeacher):
                found["rows"] = teacher.make_patch().num_rows
            tried.append({"rate": rate, **found})
    return tried
