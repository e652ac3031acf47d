"""Which models know how many facts."""

import functools
import pathlib
import statistics

import numpy as np

from training.runs.files import read_json
from training.runs.files import write_json
from training.runs.user_error import UserError
from training.studies.jobs import Job
from training.studies.recall.candidates import CANDIDATES
from training.studies.recall.learn import learn
from training.studies.recall.models import check_sizes
from training.studies.recall.recipe import RecallRecipe
from training.studies.recall.report import make_report
from training.studies.recall.step_times import StepTimes
from training.studies.recall.step_times import measure_step_times
from training.studies.recall.step_times import measure_table_times
from training.studies.recall.trials import Trial
from training.studies.recall.trials import grid_trials
from training.studies.recall.trials import main_trials
from training.studies.recall.trials import name_of_series
from training.studies.recall.trials import next_trial
from training.studies.recall.trials import rate_pairs
from training.studies.recall.trials import sweep_series
from training.studies.report import Report
from training.studies.study import Study

# Once a pair of rates reaches this recall, no others are tried: they could not
# be better.
ENOUGH = 0.999

# The cost of timing, in seconds of training.
_COST = 60.0


class RecallStudy(Study):
    """Which models know how many facts.

    - `step-times.json`: the step time of each candidate;
      `table-step-times.json`: the same, and those of the sweep's tables;
    - `rates/`: the best learning rates of each candidate;
    - `trials/`: the figures of each trained model;
    - `sweep/`: the numbers of facts that were tried with each model.
    """

    name = "recall"
    recipe_type = RecallRecipe
    may_change = ("out", "full", "seeds", "processes", "sweep", "sweep_facts")
    recipe: RecallRecipe

    def __init__(self, recipe: RecallRecipe):
        super().__init__(recipe)
        self.step_times = self.root / "step-times.json"
        self.table_step_times = self.root / "table-step-times.json"

    def trial(self, trial: Trial) -> pathlib.Path:
        """Returns the file of a trial's figures."""
        return self.root / "trials" / f"{trial.name}.json"

    def rates(self, key: str) -> pathlib.Path:
        """Returns the file of a candidate's best learning rates."""
        return self.root / "rates" / f"{key}.json"

    def series(self, name: str) -> pathlib.Path:
        """Returns the file of the numbers of facts tried with a model."""
        return self.root / "sweep" / f"{name}.json"

    def check_inputs(self) -> None:
        """Opens all facts, and builds the models."""
        for number in self.recipe.numbers_of_facts:
            self.recipe.open_facts(number)
        check_sizes(self.recipe)

    def jobs(self) -> list[Job]:
        """Returns jobs for step times, learning rates, trials and sweeps."""
        recipe, job = self.recipe, self.study_job
        timed: tuple[pathlib.Path, ...] = (self.step_times,)
        jobs = [
            job(
                "step times",
                "step-times",
                self.step_times,
                lambda: measure_step_times(recipe).as_json(),
                cost=_COST,
                alone=True,
            )
        ]
        if recipe.sweep == "facts":
            jobs.append(
                job(
                    "step times of other tables",
                    "table-step-times",
                    self.table_step_times,
                    self.measure_tables,
                    needs=timed,
                    cost=_COST,
                    alone=True,
                )
            )
            timed = (*timed, self.table_step_times)
        needs: dict[str, tuple[pathlib.Path, ...]] = {}
        for key in recipe.candidates:
            needs[key] = timed
            if grid := grid_trials(recipe, key):
                jobs.append(
                    job(
                        f"learning rates of {key.replace('-', ' ')}",
                        f"rates-{key}",
                        self.rates(key),
                        functools.partial(self.find_rates, key),
                        needs=timed,
                        cost=len(grid) * recipe.seconds,
                    )
                )
                needs[key] = (*timed, self.rates(key))
        main = main_trials(recipe)
        jobs += [
            job(
                trial.name.replace("-", " "),
                trial.name,
                self.trial(trial),
                functools.partial(self.try_once, trial),
                needs=needs[trial.key],
                cost=recipe.seconds,
            )
            for trial in main
        ]
        for series in sweep_series(recipe):
            name = name_of_series(series)
            # Both would train the same model at the same time.
            shared = [self.trial(each) for each in series if each in main]
            # Bisection makes about as many trials as their number has bits.
            trials = max(1, len(series).bit_length() - len(shared))
            jobs.append(
                job(
                    f"sweep of {series[0].model_name.replace('-', ' ')}",
                    f"sweep-{name}",
                    self.series(name),
                    functools.partial(self.try_series, series),
                    needs=(*needs[series[0].key], *shared),
                    cost=trials * recipe.seconds,
                )
            )
        return jobs

    def measure_tables(self) -> dict:
        """Measures the step times of the sweep's tables."""
        times = self.read_step_times()
        return measure_table_times(self.recipe, times).as_json()

    def try_once(self, trial: Trial) -> dict:
        """Returns a trial's figures. A finished trial is not repeated."""
        path = self.trial(trial)
        if not path.exists():
            times = self.read_step_times()
            rates = trial.rates or self.best_rates(trial.key)
            path.parent.mkdir(exist_ok=True)
            write_json(path, learn(self.recipe, trial, times, rates))
        return self.read_trial(trial)

    def find_rates(self, key: str) -> dict:
        """Trains a candidate with one pair of rates after another."""
        recalls: dict[Trial, float] = {}
        for trial in grid_trials(self.recipe, key):
            recalls[trial] = self.try_once(trial)["recall"]
            if recalls[trial] >= ENOUGH:
                break
        best = max(recalls, key=recalls.__getitem__)
        return {"rates": best.rates}

    def best_rates(self, key: str) -> tuple[float, float]:
        """Returns the learning rates of all but the values, and of these."""
        pairs = rate_pairs(self.recipe, key)
        if len(pairs) == 1:
            return pairs[0]
        of_all, of_values = read_json(self.rates(key), "--out")["rates"]
        return of_all, of_values

    def try_series(self, series: list[Trial]) -> dict:
        """Finds the largest number of facts that a model learns."""
        recalls = {
            trial: self.read_trial(trial)["recall"]
            for trial in self.made(series)
        }
        first = self.recipe.num_random_facts
        while (trial := next_trial(series, recalls, first)) is not None:
            recalls[trial] = self.try_once(trial)["recall"]
        return {"facts": sorted(trial.num_facts for trial in recalls)}

    def made(self, trials: list[Trial]) -> list[Trial]:
        """Returns those of some trials that were made."""
        return [trial for trial in trials if self.trial(trial).exists()]

    def read_trial(self, trial: Trial) -> dict:
        """Returns a trial's figures."""
        return read_json(self.trial(trial), "--out")

    def read_step_times(self) -> StepTimes:
        """Returns the widths of the candidates and the times of their steps."""
        path = self.table_step_times
        if not path.exists():
            path = self.step_times
        try:
            return StepTimes(**read_json(path, "--out"))
        except TypeError as error:
            raise UserError(
                f"--out must have a {path.name} with widths and seconds, but "
                f"'{path}' has others: put back a copy of it"
            ) from error

    def collect(self) -> dict:
        """Reads the figures of all trials."""
        recipe, times = self.recipe, self.read_step_times()
        return {
            "facts": recipe.facts,
            "seconds": recipe.seconds,
            "num_sub_keys": recipe.num_sub_keys,
            "candidates": {
                key: self._collect_one(key, times) for key in recipe.candidates
            },
            "sweep": [
                {
                    "candidate": trial.key,
                    "num_sub_keys": trial.num_sub_keys,
                    **self.read_trial(trial),
                }
                for series in sweep_series(recipe)
                for trial in self.made(series)
            ],
        }

    def _collect_one(self, key: str, times: StepTimes) -> dict:
        trials = [each for each in main_trials(self.recipe) if each.key == key]
        seeds = [self.read_trial(trial) for trial in trials]
        stages = times.stages(self.recipe, trials[0])
        same = ("parameters", "steps", "seconds", "exposures")
        return {
            "title": CANDIDATES[key].title,
            "width": times.width(self.recipe, key),
            "milliseconds": [1000 * seconds for _, _, seconds in stages],
            "rates": list(self.best_rates(key)),
            **{name: seeds[0][name] for name in same},
            # Older trials did not count them.
            "optimizer_bytes": seeds[0].get("optimizer_bytes"),
            "recall": _median(seeds, "recall"),
            "bits": _median(seeds, "bits"),
            "curve": _median_curve([seed["curve"] for seed in seeds]),
            "grid": [
                self.read_trial(trial) | {"rates": trial.rates}
                for trial in self.made(grid_trials(self.recipe, key))
            ],
            "seeds": seeds,
        }

    def report(self, findings: dict) -> Report:
        """Returns the report on the findings."""
        return make_report(self.recipe, findings)


def _median(seeds: list[dict], name: str) -> float | None:
    if seeds[0][name] is None:
        return None
    return statistics.median(seed[name] for seed in seeds)


def _median_curve(curves: list[list[dict]]) -> list[dict]:
    return [
        {
            "step": points[0]["step"],
            "seconds": points[0]["seconds"],
            "recall": float(np.median([point["recall"] for point in points])),
        }
        for points in zip(*curves)
    ]
