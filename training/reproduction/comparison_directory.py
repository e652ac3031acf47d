"""The directory of a comparison: what lies where, and who may write it."""

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator

from keras_pkm.runs.json_files import read_json
from keras_pkm.runs.json_files import write_json
from keras_pkm.runs.recipes import field_names
from keras_pkm.runs.recipes import recipe_as_json
from keras_pkm.runs.recipes import recipe_differences
from keras_pkm.runs.run_directory import RunDirectory
from keras_pkm.runs.user_error import UserError
from training.reproduction.recipe import ReproductionRecipe

# The others change what has already been found.
_MAY_CHANGE = ("out", "data_dir", "processes", "seeds", "repeat", "tasks")


class ComparisonDirectory:
    """Paths of a comparison, under one root.

    - `comparison.json`: what was asked for;
    - `seed-N/`: the pretraining runs, and their figures on other text;
    - `fine-tuned/`: the fine-tuning runs;
    - `logs/`: what each command printed;
    - `report.html`, `report.md`, `report.json` and the plots.

    Args:
        root: path of the directory.
    """

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.recipe = root / "comparison.json"
        self.logs = root / "logs"
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
        """Returns the file of a plot.

        Args:
            name: What it shows.
            kind: `"png"` or `"svg"`.
        """
        return self.root / f"{name}.{kind}"

    @contextlib.contextmanager
    def hold(self, recipe: ReproductionRecipe) -> Iterator[None]:
        """Makes the directory this recipe's, and locks it while it is open.

        Raises:
            UserError: it holds something else, or another process writes it.
        """
        if self.recipe.exists():
            stored = read_json(self.recipe, "--out")
            names = field_names(recipe, but=_MAY_CHANGE)
            if changed := recipe_differences(stored, recipe, names):
                raise self._taken(f"another one ({'; '.join(changed)})")
        elif self.root.exists() and any(self.root.iterdir()):
            raise self._taken("other files")
        self.root.mkdir(parents=True, exist_ok=True)
        write_json(self.recipe, recipe_as_json(recipe))
        with open(self.root / "lock", "w") as lock:
            # Commands inherit it: it is held until the last of them has ended,
            # even if this process is killed.
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UserError(
                    f"--out '{self.root}' is in use by another process: wait "
                    "for it to end, or stop it"
                ) from error
            os.set_inheritable(lock.fileno(), True)
            yield

    def _taken(self, what):
        return UserError(
            f"--out must be new, empty, or hold this comparison, but "
            f"'{self.root}' holds {what}: pass another one"
        )
