"""The directory of a comparison of ways to teach: what lies where."""

import pathlib

from keras_pkm.runs.json_files import read_json
from keras_pkm.runs.recipes import recipe_from_json
from training.commands.job_directory import JobDirectory
from training.forgetting.recipe import ForgettingRecipe

_MAY_CHANGE = ("out", "methods", "seeds", "processes")
_RECIPE = "forgetting.json"


class ForgettingDirectory(JobDirectory):
    """Paths of a comparison of ways to teach, under one root.

    - `forgetting.json`: what was asked for;
    - `bases/`: of each seed the model that knows the old facts, what it knows,
      and how often its slots are read;
    - `trials/`: of each way and seed what was learned and forgotten, with each
      learning rate;
    - `logs/`: what each job printed;
    - `report.md`, `report.json` and the plot.

    Args:
        root: path of the directory.
    """

    def __init__(self, root: pathlib.Path):
        super().__init__(root, _RECIPE, _MAY_CHANGE)
        self.bases = root / "bases"
        self.table = root / "report.md"
        self.numbers = root / "report.json"

    def base(self, seed: int) -> pathlib.Path:
        """Returns the file of what a seed's model knows."""
        return self.bases / f"seed-{seed}.json"

    def weights(self, seed: int) -> pathlib.Path:
        """Returns the file of a seed's model."""
        return self.bases / f"seed-{seed}-weights.npz"

    def importance(self, seed: int) -> pathlib.Path:
        """Returns the file of how often a seed's slots are read."""
        return self.bases / f"seed-{seed}-importance.npz"

    def trial(self, key: str, seed: int) -> pathlib.Path:
        """Returns the file of a way's figures."""
        return self.root / "trials" / f"{key}-seed-{seed}.json"

    def plot(self, kind: str) -> pathlib.Path:
        """Returns the file of the plot, `"png"` or `"svg"`."""
        return self.root / f"forgetting.{kind}"

    def read_recipe(self) -> ForgettingRecipe:
        """Returns the recipe that the directory is of."""
        return recipe_from_json(
            {**read_json(self.recipe, "--out"), "out": self.root},
            ForgettingRecipe,
            str(self.root),
            "--out",
        )

    def read(self, path: pathlib.Path) -> dict:
        """Returns the figures of a job."""
        return read_json(path, "--out")
