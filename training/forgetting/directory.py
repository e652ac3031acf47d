"""The directory of a comparison of teaching methods, and its files."""

import pathlib

from training.commands.job_directory import JobDirectory
from training.forgetting.recipe import ForgettingRecipe
from training.runs.files import read_json
from training.runs.recipes import recipe_from_json

_MAY_CHANGE = ("out", "methods", "seeds", "processes")
_RECIPE = "forgetting.json"


class ForgettingDirectory(JobDirectory):
    """Paths of a comparison of teaching methods, under one root.

    - `forgetting.json`: the recipe;
    - `bases/`: for each seed, the model that knows the old facts, the share of
      facts that it knows, and how often its slots are read;
    - `trials/`: for each method and seed, the figures of what was learned and
      forgotten with each learning rate;
    - `logs/`: the output of each job;
    - `report.md`, `report.json` and the plot.
    """

    def __init__(self, root: pathlib.Path):
        super().__init__(root, _RECIPE, _MAY_CHANGE)
        self.bases = root / "bases"
        self.table = root / "report.md"
        self.numbers = root / "report.json"

    def base(self, seed: int) -> pathlib.Path:
        """Returns the file of the figures of a seed's model."""
        return self.bases / f"seed-{seed}.json"

    def weights(self, seed: int) -> pathlib.Path:
        """Returns the file of a seed's model."""
        return self.bases / f"seed-{seed}-weights.npz"

    def importance(self, seed: int) -> pathlib.Path:
        """Returns the file with the reads of a seed's slots."""
        return self.bases / f"seed-{seed}-importance.npz"

    def trial(self, key: str, seed: int) -> pathlib.Path:
        """Returns the file of a method's figures."""
        return self.root / "trials" / f"{key}-seed-{seed}.json"

    def plot(self, kind: str) -> pathlib.Path:
        """Returns the file of the plot, `"png"` or `"svg"`."""
        return self.root / f"forgetting.{kind}"

    def read_recipe(self) -> ForgettingRecipe:
        """Returns the recipe of the directory."""
        return recipe_from_json(
            {**read_json(self.recipe, "--out"), "out": self.root},
            ForgettingRecipe,
            str(self.root),
            "--out",
        )

    def read(self, path: pathlib.Path) -> dict:
        """Returns the figures of a job."""
        return read_json(path, "--out")
