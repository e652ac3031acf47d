"""What models learn, and what they forget, with several teaching methods."""

import pathlib
import statistics
import time
from collections.abc import Sequence

from keras_pkm.teaching.memory_teacher import MemoryTeacher
from training.runs.files import read_json
from training.runs.files import write_json
from training.runs.user_error import UserError
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

_BASE = "base"
# The approximate cost of a job.
_COST = 90.0
_COST_OF_A_RATE = 25.0


class ForgettingStudy(Study):
    """What models learn, and what they forget, with several teaching methods.

    - `bases/`: for each seed, the model that knows the old facts, the share of
      facts that it knows, and how often its slots are read;
    - `trials/`: for each method and seed, the figures of what was learned and
      forgotten with each learning rate.
    """

    name = "forgetting"
    recipe_type = ForgettingRecipe
    may_change = ("out", "methods", "seeds", "processes")
    recipe: ForgettingRecipe

    def base(self, seed: int) -> pathlib.Path:
        """Returns the file of the figures of a seed's model."""
        return self.root / "bases" / f"seed-{seed}.json"

    def trial(self, key: str, seed: int) -> pathlib.Path:
        """Returns the file of a method's figures."""
        return self.root / "trials" / f"{key}-seed-{seed}.json"

    def check_inputs(self) -> None:
        """Opens the model and the materials."""
        check_setting(self.recipe)

    def jobs(self) -> list[Job]:
        """Returns a job for the old facts and one for each method, by seed."""
        jobs = []
        for seed in range(self.recipe.seeds):
            needs: tuple[pathlib.Path, ...] = ()
            if self.recipe.model is None:
                base = self.base(seed)
                jobs.append(
                    self.study_job(
                        f"old facts, seed {seed}",
                        f"{_BASE}-seed-{seed}",
                        base,
                        needs=(),
                        cost=_COST,
                    )
                )
                needs = (base,)
            for key in self.recipe.methods:
                candidate = CANDIDATES[key]
                rates = candidate.rates(self.recipe)
                jobs.append(
                    self.study_job(
                        f"{candidate.title}, seed {seed}",
                        f"{key}-seed-{seed}",
                        self.trial(key, seed),
                        needs=needs,
                        cost=_COST_OF_A_RATE * len(rates),
                    )
                )
        return jobs

    def do(self, job: str) -> None:
        """Does one of the jobs, and writes what it has found."""
        key, number = job.rsplit("-seed-", 1)
        seed = int(number)
        if key == _BASE:
            path, found = self.base(seed), learn_facts(self.recipe, seed)
        else:
            path = self.trial(key, seed)
            found = try_candidate(self.recipe, key, seed)
        path.parent.mkdir(exist_ok=True)
        write_json(path, found)

    def collect(self) -> dict:
        """Reads the figures of all jobs."""
        seeds = range(self.recipe.seeds)
        candidates = {}
        for key in self.recipe.methods:
            found = [self._read_trial(key, seed) for seed in seeds]
            tried = [_of_a_rate(each) for each in zip(*found)]
            candidates[key] = {
                "title": CANDIDATES[key].title,
                "tried": tried,
                "best": best_rate(
                    [each["right_after"] for each in tried],
                    [merit(each["learned"], each["kept"]) for each in tried],
                ),
            }
        known = None
        if self.recipe.model is None:
            known = [
                read_json(self.base(seed), "--out")["known"] for seed in seeds
            ]
        return {"candidates": candidates, "known_before": known}

    def _read_trial(self, key: str, seed: int) -> list[dict]:
        """The figures of a method, one dict for each learning rate."""
        path = self.trial(key, seed)
        tried = read_json(path, "--out")["tried"]
        if any("learned_then" not in each for each in tried):
            raise UserError(
                f"--out must have trials of this version, but '{path}' does "
                "not say what was known right after a group: delete it, and "
                "repeat the command"
            )
        return tried

    def report(self, findings: dict) -> Report:
        """Returns the report on the findings."""
        return make_report(self.recipe, findings)


def _of_a_rate(seeds: Sequence[dict]) -> dict:
    return {
        "rate": seeds[0]["rate"],
        "right_after": statistics.median(map(right_after, seeds)),
        "learned": statistics.median(map(learned, seeds)),
        "kept": statistics.median(map(kept, seeds)),
        "seeds": list(seeds),
    }


def try_candidate(recipe: ForgettingRecipe, key: str, seed: int) -> dict:
    """Teaches a model with one method, once with each learning rate."""
    candidate = CANDIDATES[key]
    tried = []
    with open_setting(recipe, seed) as setting:
        importance = None
        if candidate.method == "slots":
            importance = candidate.scores(setting.measure_importance())
        for rate in candidate.rates(recipe):
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
    return {"candidate": key, "seed": seed, "tried": tried}
