"""The directory of a comparison of recall: what lies where."""

import pathlib

from keras_pkm.runs.json_files import read_json
from keras_pkm.runs.recipes import recipe_from_json
from keras_pkm.runs.user_error import UserError
from training.commands.job_directory import JobDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.step_times import StepTimes
from training.knowledge.trials import Trial

# The others change what has already been found.
_MAY_CHANGE = (
    *("out", "full", "seeds", "processes"),
    *("sweep", "sweep_facts"),
)
_RECIPE = "recall.json"


class RecallDirectory(JobDirectory):
    """Paths of a comparison of recall, under one root.

    - `recall.json`: what was asked for;
    - `step-times.json`: the time of a step of each contender, and
      `table-step-times.json` with those of the sweep's tables, too;
    - `rates/`: the best learning rates of each contender;
    - `trials/`: what each trained model knows;
    - `sweep/`: which numbers of facts were tried with each model;
    - `logs/`: what each job printed;
    - `report.md`, `report.json` and the plots.

    Args:
        root: path of the directory.
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
        """Returns the file of the numbers of facts that a model was given."""
        return self.root / "sweep" / f"{name}.json"

    def plot(self, name: str, kind: str) -> pathlib.Path:
        """Returns the file of a plot, `"png"` or `"svg"`."""
        return self.root / f"{name}.{kind}"

    def read_recipe(self) -> RecallRecipe:
        """Returns the recipe that the directory is of."""
        return recipe_from_json(
            {**read_json(self.recipe, "--out"), "out": self.root},
            RecallRecipe,
            str(self.root),
            "--out",
        )

    def read_step_times(self) -> StepTimes:
        """Returns the widths of the contenders and the times of their steps.

        Raises:
            UserError: the file is damaged.
        """
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
