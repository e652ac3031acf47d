"""The directory of a comparison of recall, and its files."""

import pathlib

from training.commands.job_directory import JobDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.step_times import StepTimes
from training.knowledge.trials import Trial
from training.runs.files import read_json
from training.runs.recipes import recipe_from_json
from training.runs.user_error import UserError

# Fields that may change; others would invalidate earlier findings.
_MAY_CHANGE = (
    *("out", "full", "seeds", "processes"),
    *("sweep", "sweep_facts"),
)
_RECIPE = "recall.json"


class RecallDirectory(JobDirectory):
    """Paths of a comparison of recall, under one root.

    - `recall.json`: the recipe;
    - `step-times.json`: the step time of each contender;
      `table-step-times.json`: the same, and those of the sweep's tables;
    - `rates/`: the best learning rates of each contender;
    - `trials/`: the figures of each trained model;
    - `sweep/`: the numbers of facts that were tried with each model;
    - `logs/`: the output of each job;
    - `report.md`, `report.json` and the plots.
    """

    def __init__(self, root: pathlib.Path):
        super().__init__(root, _RECIPE, _MAY_CHANGE)
        self.step_times = root / "step-times.json"
        self.table_step_times = root / "table-step-times.json"
        self.table = root / "report.md"
        self.numbers = root / "report.json"

    def trial(self, trial: Trial) -> pathlib.Path:
        """Returns the file of a trial's figures."""
        return self.root / "trials" / f"{trial.name}.json"

    def rates(self, key: str) -> pathlib.Path:
        """Returns the file of a contender's best learning rates."""
        return self.root / "rates" / f"{key}.json"

    def series(self, name: str) -> pathlib.Path:
        """Returns the file of the numbers of facts tried with a model."""
        return self.root / "sweep" / f"{name}.json"

    def plot(self, name: str, kind: str) -> pathlib.Path:
        """Returns the file of a plot, `"png"` or `"svg"`."""
        return self.root / f"{name}.{kind}"

    def read_recipe(self) -> RecallRecipe:
        """Returns the recipe of the directory."""
        return recipe_from_json(
            {**read_json(self.recipe, "--out"), "out": self.root},
            RecallRecipe,
            str(self.root),
            "--out",
        )

    def read_step_times(self) -> StepTimes:
        """Returns the widths of the contenders and the times of their steps."""
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

    def read_rates(self, key: str) -> tuple[float, float]:
        """Returns a contender's best learning rates."""
        of_all, of_values = read_json(self.rates(key), "--out")["rates"]
        return of_all, of_values

    def read_trial(self, trial: Trial) -> dict:
        """Returns a trial's figures."""
        return read_json(self.trial(trial), "--out")
