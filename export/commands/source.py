"""The trained model that `--model` names: a run's model, or a preset."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import keras_hub

from keras_pkm.export.saved_model import TASKS
from keras_pkm.files.presets import load_preset_tokenizer
from training.runs.files import check_unchanged
from training.runs.files import read_json
from training.runs.files import read_text
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError


@dataclasses.dataclass(frozen=True)
class Source:
    """A preset, with the recipe and results of the run that wrote it."""

    # The name that the user gave.
    name: str
    # The preset's directory.
    path: pathlib.Path
    # The run's recipe, or an empty dict.
    recipe: dict = dataclasses.field(default_factory=dict)
    # The run's results, or an empty dict.
    results: dict = dataclasses.field(default_factory=dict)
    # The run's results as Markdown, or an empty string.
    report: str = ""

    @classmethod
    def open(cls, name: str) -> "Source":
        """Finds the model in a directory.

        For a fine-tuning run that is the best seed's model, for a pretraining
        run the last model. Otherwise the directory is a preset itself.
        """
        run = RunDirectory(name)
        if run.is_run:
            source = cls(
                name,
                run.find_model(),
                run.read_recipe(),
                run.read_results(),
                read_text(run.results_table, "--model"),
            )
        else:
            source = cls(name, pathlib.Path(name))
        if not (source.path / "config.json").exists():
            raise UserError(
                "--model must be the directory of a run or a preset, but "
                f"'{source.path}' has no config.json: pass a run's directory, "
                "or save a preset with `save_to_preset`"
            )
        check_unchanged(source.path, "--model")
        return source

    def load(self, what: str) -> Any:
        """Loads what an export needs: a task, the encoder or the tokenizer."""
        if what == "preprocessor":
            return self.load_tokenizer()
        task = self._task()
        if what == "encoder":
            # It gets the head of a masked language model, too.
            is_masked_lm = issubclass(task, keras_hub.models.MaskedLM)
            kind = task if is_masked_lm else keras_hub.models.Backbone
            return self._load(kind.from_preset)
        if not issubclass(task, TASKS[what]):
            raise UserError(
                f"--what {what} needs a model with that head, but "
                f"'{self.path}' contains a {task.__name__}: train one, or pass "
                "another --what"
            )
        return self._load(task.from_preset)

    def _task(self) -> type[Any]:
        name = read_json(self.path / "task.json", default={}).get(
            "registered_name"
        )
        task = name and keras.saving.get_registered_object(name)
        return task or keras_hub.models.Backbone

    def load_tokenizer(self) -> keras_hub.tokenizers.Tokenizer:
        """Loads the tokenizer."""
        if not (self.path / "tokenizer.json").exists():
            raise UserError(
                f"--model must have a tokenizer, but '{self.path}' has no "
                "tokenizer.json: save the preset with its preprocessor"
            )
        return self._load(load_preset_tokenizer)

    @property
    def sequence_length(self) -> int | None:
        """The length of its preprocessor's inputs, or `None` if unknown."""
        config = read_json(self.path / "preprocessor.json", default={})
        return config.get("config", {}).get("sequence_length")

    def _load(self, from_preset: Callable[[str], Any]) -> Any:
        try:
            return from_preset(str(self.path))
        # keras-hub raises all kinds of errors for files that it cannot use.
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise UserError(
                f"--model must be a run or a preset that can be loaded, "
                f"received '{self.name}': {reason}"
            ) from error
