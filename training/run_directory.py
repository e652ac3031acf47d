"""The directory of a run: what lies where, and that it is written once."""

import dataclasses
import json
import pathlib
import shutil
import time

from training.recipes import PretrainingRecipe
from training.user_error import UserError


class RunDirectory:
    """Paths of a run, under one root that holds all it takes to go on.

    - `recipe.json`, `vocabulary.txt`: what was asked for, and the tokens;
    - `best/`, `last/`: the model as presets, by held-out perplexity and by
      time; `plain/` the model before memory was added;
    - `logs/`: CSV files and TensorBoard summaries, by stage;
    - `data/`: the packed corpus;
    - `results.json`, `results.md`: the final figures.

    Args:
        root: path of the directory.
    """

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.recipe = self.root / "recipe.json"
        self.vocabulary = self.root / "vocabulary.txt"
        self.data = self.root / "data"
        self.logs = self.root / "logs"
        self.best = self.root / "best"
        self.last = self.root / "last"
        self.plain = self.root / "plain"

    @classmethod
    def of(cls, recipe: PretrainingRecipe) -> "RunDirectory":
        """Returns the run directory that a recipe asks for."""
        name = f"{recipe.recipe}-{time.strftime('%Y%m%d-%H%M%S')}"
        return cls(recipe.run_dir or pathlib.Path("runs") / name)

    def check_free(self):
        """Checks that the directory is new or empty.

        Raises:
            UserError: it is neither.
        """
        try:
            holds_something = self.root.exists() and any(self.root.iterdir())
        except OSError as error:
            raise UserError(
                f"--run-dir must be a directory that can be read, received "
                f"'{self.root}' ({error.strerror}): pass another one"
            ) from error
        if holds_something:
            what = "another run" if self.recipe.exists() else "other files"
            raise UserError(
                f"--run-dir must be new or empty, but '{self.root}' holds "
                f"{what}: pass another one, or move it away"
            )

    def create(self, recipe: PretrainingRecipe, vocabulary: list[str] | None):
        """Creates the directory with its recipe and, if given, vocabulary.

        Raises:
            UserError: it cannot be created.
        """
        try:
            for directory in (self.root, self.data, self.logs):
                directory.mkdir(parents=True, exist_ok=True)
            self.recipe.write_text(
                json.dumps(dataclasses.asdict(recipe), indent=2) + "\n"
            )
        except OSError as error:
            raise UserError(
                f"--run-dir must be a directory that can be written, received "
                f"'{self.root}' ({error.strerror}): pass another one"
            ) from error
        if vocabulary is not None:
            self.write_vocabulary(vocabulary)

    def write_vocabulary(self, vocabulary: list[str]):
        """Writes `vocabulary.txt`, a token a line."""
        self.vocabulary.write_text(
            "".join(f"{token}\n" for token in vocabulary), encoding="utf-8"
        )


def save_preset(task, preprocessor, path: pathlib.Path):
    """Saves a task with its preprocessor as a preset, whole or not at all.

    Args:
        task: a keras-hub task that trains on preprocessed data.
        preprocessor: the preprocessor that its users need.
        path: directory to write, or to replace.
    """
    partial = path.with_name(f"{path.name}.partial")
    replaced = path.with_name(f"{path.name}.replaced")
    for leftover in (partial, replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    task.preprocessor = preprocessor
    try:
        task.save_to_preset(str(partial))
    finally:
        # The task's `fit` would preprocess its data once more.
        task.preprocessor = None
    if path.exists():
        path.rename(replaced)
    partial.rename(path)
    shutil.rmtree(replaced, ignore_errors=True)
