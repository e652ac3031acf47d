"""The directory of a run: the only place that knows its files' names."""

import contextlib
import pathlib
import shutil
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from keras_pkm.files.checksums import record_checksums
from keras_pkm.files.whole_files import is_temporary
from keras_pkm.files.whole_files import remove_leftovers
from keras_pkm.files.whole_files import write_whole
from training.runs.directory_lock import LOCK
from training.runs.directory_lock import locked_directory
from training.runs.files import read_json
from training.runs.files import write_json
from training.runs.recipes import field_names
from training.runs.recipes import read_recipe
from training.runs.recipes import recipe_as_json
from training.runs.recipes import recipe_differences
from training.runs.user_error import UserError

# Flags that may change when a run is resumed.
_FREE_FIELDS = (
    "out",
    "resume",
    "data_dir",
    "data_from",
    "checkpoint_every",
    "keep_checkpoints",
    "max_skipped_steps",
)
# The models of a pretraining run, in the order of preference: its results are
# those of the last one.
_MODELS = ("last", "best", "plain")


class StageLogs:
    """Paths of the logs of a stage of pretraining."""

    def __init__(self, root: pathlib.Path, label: str):
        # CSV file of Keras' own figures, a row for each evaluation.
        self.epochs = root / f"{label}.csv"
        # CSV file of the training perplexity by step.
        self.perplexity = root / f"{label}-perplexity.csv"
        # CSV file of the usage of each memory by step.
        self.memory = root / f"{label}-memory.csv"
        # Directory of the reads of each slot, a file for each measurement.
        self.slots = root / f"{label}-slots"
        # Directory of TensorBoard summaries.
        self.tensorboard = root / label
        # Directory of TensorBoard summaries of the memories.
        self.memory_tensorboard = root / label / "memory"


class SeedDirectory:
    """The files of one seed of a fine-tuning run."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        # The figures after each epoch, written after the last one.
        self.results = root / "results.json"
        # For resuming an unfinished seed.
        self.checkpoints = root / "checkpoints"
        # The model of the best epoch, as a preset.
        self.best = root / "best"


class RunDirectory:
    """Paths of a run, under one root with everything needed to resume it.

    - `recipe.json`: the flags of the run;
    - `tokenizer/`: the tokenizer with its vocabulary, as a preset has it;
    - `best/`, `last/`: presets of the model with the best held-out perplexity
      and of the last one; `plain/`: the model before memory was added;
    - `checkpoints/`: for resuming an unfinished run, by stage;
    - `logs/`: CSV files and TensorBoard summaries, by stage;
    - `data/`: the packed corpus;
    - `seed-N/`: the files of one seed of a fine-tuning run;
    - `results.json`, `results.md`: the final figures;
    - `checksums.json`: of these files; presets and `data/` have their own;
    - `held_out_losses.npz`: for each held-out row the sum of -ln p and the
      number of predicted tokens, `nll` and `tokens`;
    - `document_frequencies.npz`: the number of batches of training text that
      read each slot, as `keras_pkm.teaching.SlotImportance` stores it;
    - `patch.safetensors`: the changes of the memories, if the run was taught.
    """

    def __init__(self, root: str | pathlib.Path):
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
        self.results_table = self.root / "results.md"
        self.held_out_losses = self.root / "held_out_losses.npz"
        self.document_frequencies = self.root / "document_frequencies.npz"
        self.patch = self.root / "patch.safetensors"

    def stage_checkpoints(self, label: str) -> pathlib.Path:
        """Returns the directory of a stage's checkpoints."""
        return self.checkpoints / label

    def stage_logs(self, label: str) -> StageLogs:
        """Returns the paths of a stage's logs."""
        return StageLogs(self.logs, label)

    def seed(self, seed: int) -> SeedDirectory:
        """Returns the directory of a seed of a fine-tuning run."""
        return SeedDirectory(self.root / f"seed-{seed}")

    def name_of(self, path: pathlib.Path) -> str:
        """Returns the name of a path in this directory for use in results."""
        return path.relative_to(self.root).as_posix()

    @property
    def is_run(self) -> bool:
        """Whether a run has been started here."""
        return self.recipe.exists()

    @property
    def is_pretraining_run(self) -> bool:
        """Whether a pretraining run has been started here."""
        return self.is_run and "plain_steps" in self.read_recipe()

    @property
    def has_data(self) -> bool:
        """Whether the tokenizer and the packed corpora are complete."""
        return all(
            path.exists()
            for path in (
                self.tokenizer,
                self.packed_train,
                self.packed_held_out,
            )
        )

    @property
    def has_logs(self) -> bool:
        """Whether a stage of pretraining has logged something."""
        return self.logs.is_dir() and any(self.logs.iterdir())

    def read_recipe(self, flag: str = "--model") -> dict[str, Any]:
        """Returns the recipe as it is stored."""
        return read_recipe(self.recipe, flag)

    def read_results(self, flag: str = "--model") -> dict[str, Any]:
        """Returns the final figures; they are empty until the run has ended."""
        return read_json(self.results, flag, default={})

    def write_results(self, results: dict[str, Any], table: str) -> None:
        """Writes the final figures, which ends a run: a table, then JSON."""
        write_whole(self.results_table, f"{table}\n")
        write_json(self.results, results)
        finished = [
            *(self.results, self.results_table, self.held_out_losses),
            *(self.document_frequencies, self.patch),
        ]
        logs = (path for path in self.logs.rglob("*") if path.is_file())
        record_checksums(
            self.root, [path for path in (*finished, *logs) if path.exists()]
        )

    def find_model(self, flag: str = "--model") -> pathlib.Path:
        """Returns the directory of the run's model, a preset.

        For a fine-tuning run that is the model of the best seed, and for a
        pretraining run the last one, or the plain one while there is no other.
        """
        best = self.read_results(flag).get("best_model")
        if best is None and "task" in self.read_recipe(flag):
            raise UserError(
                f"{flag} must be a fine-tuning run that has ended, but "
                f"'{self.root}' has no best model yet: resume it, or pass one "
                "of its seed-N/best"
            )
        for name in (best,) if best else _MODELS:
            if (self.root / name / "config.json").exists():
                return self.root / name
        raise UserError(
            f"{flag} must be a run that has saved a model, but '{self.root}' "
            f"has none in {best or ' or '.join(_MODELS)} yet: resume it first"
        )

    def check(self, recipe: Any) -> None:
        """Checks that a run of the recipe can start or resume here."""
        self._check_place()
        if not self.is_run:
            return
        if not recipe.resume:
            raise self._taken(
                "an unfinished run, which --resume would continue"
            )
        stored = self.read_recipe("--out")
        names = field_names(recipe, but=_FREE_FIELDS)
        if found := recipe_differences(stored, recipe, names):
            raise self._taken(
                f"an unfinished run of another recipe ({'; '.join(found)})"
            )

    def _check_place(self) -> None:
        """Checks that there is nothing but, perhaps, an unfinished run."""
        try:
            if self.results.exists():
                raise self._taken("a finished run")
            if self.root.exists() and not self.is_run:
                for path in self.root.iterdir():
                    if path.name != LOCK and not is_temporary(path):
                        raise self._taken("other files")
        except OSError as error:
            raise UserError(
                f"--out must be a directory that can be read, received "
                f"'{self.root}' ({error.strerror}): pass another one"
            ) from error

    def _taken(self, what: str) -> UserError:
        return UserError(
            f"--out must be new, empty, or contain an unfinished run of "
            f"the same recipe, but '{self.root}' contains {what}: pass another "
            "one, or move it away"
        )

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Locks the directory within this context; see `locked_directory`.

        Leftovers of interrupted writes are removed first.
        """
        self._check_place()
        with locked_directory(self.root, "--out"):
            remove_leftovers(self.root)
            yield

    def create(self, recipe: Any, folders: Iterable[pathlib.Path] = ()) -> None:
        """Writes the recipe. The directory must be locked and checked."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            write_json(self.recipe, recipe_as_json(recipe))
            record_checksums(self.root, [self.recipe])
            for folder in folders:
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(
                f"--out must be a directory that can be written, received "
                f"'{self.root}' ({error.strerror}): pass another one"
            ) from error

    def clear(self) -> None:
        """Deletes all files of a run that turned out to be impossible."""
        for path in self.root.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()


def find_preset(name: str, flag: str = "--model") -> str:
    """Returns the preset that a flag names: a run's model, or itself."""
    run = RunDirectory(name)
    return str(run.find_model(flag)) if run.is_run else name
