"""The directory of a run: what lies where, and whose it is."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
from collections.abc import Sequence

from keras_pkm.runs.user_error import UserError

# What may change from one part of a run to the next.
_FREE_FIELDS = (
    "run_dir",
    "resume",
    "data_dir",
    "data_from",
    "checkpoint_every",
    "keep_checkpoints",
    "max_skipped_steps",
)


class RunDirectory:
    """Paths of a run, under one root that holds all it takes to go on.

    - `recipe.json`: what was asked for;
    - `tokenizer/`: the tokenizer with its vocabulary, as a preset has it;
    - `best/`, `last/`: the model as presets, by held-out perplexity and by
      time; `plain/` the model before memory was added;
    - `checkpoints/`: by stage, from which an unfinished run goes on;
    - `logs/`: CSV files and TensorBoard summaries, by stage;
    - `data/`: the packed corpus;
    - `results.json`, `results.md`: the final figures;
    - `held_out_losses.npz`: of each held-out row the sum of -ln p and the
      number of predicted tokens, `nll` and `tokens`.

    Args:
        root: path of the directory.
    """

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.recipe = self.root / "recipe.json"
        self.tokenizer = self.root / "tokenizer"
        self.data = self.root / "data"
        self.packed_train = self.data / "train.int32"
        self.packed_held_out = self.data / "held_out.int32"
        self.checkpoints = self.root / "checkpoints"
        self.logs = self.root / "logs"
        self.best = self.root / "best"
        self.last = self.root / "last"
        self.plain = self.root / "plain"
        self.results = self.root / "results.json"
        self.held_out_losses = self.root / "held_out_losses.npz"

    @property
    def has_data(self) -> bool:
        """Whether tokenizer and packed corpora are there, and whole."""
        return all(
            path.exists()
            for path in (
                self.tokenizer,
                self.packed_train,
                self.packed_held_out,
            )
        )

    def check(self, recipe):
        """Checks that the recipe can begin, or go on, in this directory.

        Raises:
            UserError: it holds something else, or that run may not go on.
        """
        try:
            names = [
                path.name
                for path in (self.root.iterdir() if self.root.exists() else ())
                if not path.name.endswith(".partial")
            ]
            if not names:
                return
            if not self.recipe.exists():
                raise self._taken("other files")
            if self.results.exists():
                raise self._taken("a finished run")
            if not recipe.resume:
                raise self._taken(
                    "an unfinished run, which --resume would continue"
                )
            other = json.loads(self.recipe.read_text())
        except OSError as error:
            raise UserError(
                f"--run-dir must be a directory that can be read, received "
                f"'{self.root}' ({error.strerror}): pass another one"
            ) from error
        except json.JSONDecodeError as error:
            raise self._taken(
                f"a recipe.json that is not JSON ({error})"
            ) from error
        names = [
            field.name
            for field in dataclasses.fields(recipe)
            if field.name not in _FREE_FIELDS
        ]
        if found := differences(other, recipe, names):
            raise self._taken(
                f"an unfinished run of another recipe ({'; '.join(found)})"
            )

    def _taken(self, what):
        return UserError(
            f"--run-dir must be new, empty, or hold an unfinished run of the "
            f"same recipe, but '{self.root}' holds {what}: pass another one, "
            "or move it away"
        )

    def create(self, recipe, parts: tuple[str, ...] = ()):
        """Creates the directory with its recipe.

        Args:
            recipe: a dataclass.
            parts: directories in it that are to be there.

        Raises:
            UserError: it cannot be created.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            write_whole(
                self.recipe,
                json.dumps(dataclasses.asdict(recipe), indent=2) + "\n",
            )
            for part in parts:
                (self.root / part).mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(
                f"--run-dir must be a directory that can be written, received "
                f"'{self.root}' ({error.strerror}): pass another one"
            ) from error


def write_whole(path: pathlib.Path, text: str):
    """Writes a text file, which is then there as a whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def differences(other: dict, recipe, names: Sequence[str]) -> list[str]:
    """Returns those of the fields in which a stored recipe differs, in words.

    Args:
        other: what a `recipe.json` holds.
        recipe: a dataclass.
        names: its fields to compare.
    """
    # What a run of an earlier version does not name was not there to choose.
    defaults = {
        field.name: field.default
        for field in dataclasses.fields(recipe)
        if field.default is not dataclasses.MISSING
    }
    # Through JSON, which makes lists of tuples.
    asked, defaults = json.loads(
        json.dumps([dataclasses.asdict(recipe), defaults])
    )
    other = {**defaults, **other}
    return [
        f"--{name.replace('_', '-')} was {other.get(name)}, now {asked[name]}"
        for name in names
        if other.get(name) != asked[name]
    ]


def save_preset(task, preprocessor, path: pathlib.Path):
    """Saves a task with its preprocessor as a preset, whole or not at all.

    Args:
        task: a keras-hub task that trains on preprocessed data.
        preprocessor: the preprocessor that its users need.
        path: directory to write, or to replace.
    """
    with _replacing(path) as partial:
        task.preprocessor = preprocessor
        try:
            task.save_to_preset(str(partial))
        finally:
            # The task's `fit` would preprocess its data once more.
            task.preprocessor = None


def save_tokenizer(tokenizer, path: pathlib.Path):
    """Saves a keras-hub tokenizer as in a preset, whole or not at all."""
    with _replacing(path) as partial:
        partial.mkdir()
        tokenizer.save_to_preset(str(partial))


@contextlib.contextmanager
def _replacing(path):
    """Gives a place to write to, and moves what was written to `path`."""
    partial = path.with_name(f"{path.name}.partial")
    replaced = path.with_name(f"{path.name}.replaced")
    for leftover in (partial, replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    yield partial
    if path.exists():
        path.rename(replaced)
    partial.rename(path)
    shutil.rmtree(replaced, ignore_errors=True)
