"""Where the runs of a paper's comparison lie."""

import pathlib

from training.runs.run_directory import RunDirectory


class PaperRuns:
    """Paths of the runs of a paper's comparison.

    - `seed-N/`: the pretraining runs, and their figures on other text;
    - `fine-tuned/`: the fine-tuning runs.
    """

    def __init__(self, root: pathlib.Path):
        self.root = root

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
