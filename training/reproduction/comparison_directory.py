"""The directory of a comparison: what lies where, and who may write it."""

import contextlib
import pathlib
from collections.abc import Iterator

from keras_pkm.runs.directory_lock import LOCK
from keras_pkm.runs.directory_lock import locked_directory
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
        """Locks the directory while it is open, and checks whose it is.

        Raises:
            UserError: it holds something else, or another process writes it.
        """
        # The commands that are started hold the lock, too, until the last of
        # them has ended, even if this process is killed.
        with locked_directory(self.root, "--out", inherited=True):
            if self.recipe.exists():
                stored = read_json(self.recipe, "--out")
                names = field_names(recipe, but=_MAY_CHANGE)
                if changed := recipe_differences(stored, recipe, names):
                    raise self._taken(f"another one ({'; '.join(changed)})")
            elif any(path.name != LOCK for path in self.root.iterdir()):
                raise self._taken("other files")
            yield

    def write_recipe(self, recipe: ReproductionRecipe) -> None:
        """Makes the directory, which must be locked, that of a recipe."""
        write_json(self.recipe, recipe_as_json(recipe))

    def _taken(self, what):
        return UserError(
            f"--out must be new, empty, or hold this comparison, but "
            f"'{self.root}' holds {what}: pass another one"
        )
