"""A directory that several commands write to."""

import contextlib
import pathlib
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from training.runs.directory_lock import LOCK
from training.runs.directory_lock import locked_directory
from training.runs.files import read_json
from training.runs.files import write_json
from training.runs.recipes import field_names
from training.runs.recipes import recipe_as_json
from training.runs.recipes import recipe_differences
from training.runs.user_error import UserError


class JobDirectory:
    """The directory of a recipe, its commands' results, and their logs."""

    def __init__(
        self, root: pathlib.Path, recipe_name: str, may_change: Iterable[str]
    ):
        self.root = root
        self.recipe = root / recipe_name
        self.logs = root / "logs"
        self._may_change = tuple(may_change)

    @contextlib.contextmanager
    def hold(self, recipe: Any) -> Iterator[None]:
        """Locks the directory within this context, and checks its recipe."""
        # The started commands keep the lock, too, until the last of them has
        # ended, even if this process is killed.
        with locked_directory(self.root, "--out", inherited=True):
            if self.recipe.exists():
                stored = read_json(self.recipe, "--out")
                names = field_names(recipe, but=self._may_change)
                if changed := recipe_differences(stored, recipe, names):
                    raise self._taken(f"another one ({'; '.join(changed)})")
            elif any(path.name != LOCK for path in self.root.iterdir()):
                raise self._taken("other files")
            yield

    def write_recipe(self, recipe: Any) -> None:
        """Writes the recipe into the directory, which must be locked."""
        write_json(self.recipe, recipe_as_json(recipe))

    def _taken(self, what):
        return UserError(
            f"--out must be new, empty, or contain this comparison, but "
            f"'{self.root}' contains {what}: pass another one"
        )
