"""The directory of a comparison: what lies where."""

import pathlib

from training.commands.job_directory import JobDirectory
from training.runs.run_directory import RunDirectory

# The others change what has already been found.
_MAY_CHANGE = ("out", "data_dir", "processes", "seeds", "repeat", "tasks")


class ComparisonDirectory(JobDirectory):
    """Paths of a comparison, under one root.

    - `comparison.json`: what was asked for;
    - `seed-N/`: the pretraining runs, and their figures on other text;
    - `fine-tuned/`: the fine-tuning runs;
    - `logs/`: what each command printed;
    - `report.html`, `report.md`, `report.json` and the plots.
    """

    def __init__(self, root: pathlib.Path):
        super().__init__(root, "comparison.json", _MAY_CHANGE)
        self.page = root / "report.html"
        self.table = root / "report.md"
        self.numbers = root / "report.json"

    def pretraining(self, seed: int, key: str) -> RunDirectory:
        """Returns the directory of a pretraining run."""
        return RunDirectory(self.root / f"seed-{seed}" / key)

    def out_of_domain(self, seed: int, key: str) -> pathlib.Path:
        """Returns the file of a model's figures on text of another kind."""
        return self.root / f"seed-{seed}" / f"{key}-out-of-domain.json"

    def fine_tuning(self, key: str, task: str, frozen: bool) -> RunDirectory:
        """Returns the directory of a fine-tuning run."""
        kind = "frozen" if frozen else "updated"
        return RunDirectory(self.root / "fine-tuned" / f"{key}-{task}-{kind}")

    def plot(self, name: str, kind: str) -> pathlib.Path:
        """Returns the file of a plot."""
        return self.root / f"{name}.{kind}"
