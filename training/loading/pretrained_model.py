"""Loads the model that `--model` names: a run, preset or directory."""

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import keras_hub

from keras_pkm import models
from keras_pkm.converters.hugging_face import HuggingFaceDirectory
from keras_pkm.converters.hugging_face_families import (
    FAMILIES as HUGGING_FACE_FAMILIES,
)
from keras_pkm.converters.hugging_face_files import read_config
from keras_pkm.converters.hugging_face_hub import local_directory
from keras_pkm.converters.hugging_face_tokenizers import read_tokenizer
from keras_pkm.files.presets import load_preset_tokenizer
from training.loading.families import DECODERS
from training.loading.families import ENCODERS
from training.loading.families import DecoderFamily
from training.loading.families import EncoderFamily
from training.loading.families import family_of
from training.runs.files import check_unchanged
from training.runs.files import read_json
from training.runs.run_directory import find_preset
from training.runs.user_error import UserError


@dataclasses.dataclass(frozen=True)
class PretrainedModel:
    """A backbone with its tokenizer."""

    # The classes of its family.
    family: EncoderFamily
    # A backbone of `keras_pkm.models`, with memory or without.
    backbone: keras_hub.models.Backbone
    # The tokenizer that it was trained with.
    tokenizer: keras_hub.tokenizers.Tokenizer
    # Whether its memory was added to a plain model, and is not trained.
    has_new_memory: bool = False

    @property
    def new_weights(self) -> str | None:
        """A pattern of the weights that are not trained, if there are any."""
        if not self.has_new_memory:
            return None
        trained = set(map(id, self.backbone.plain_backbone.weights))
        paths = [
            weight.path.removeprefix(f"{self.backbone.name}/")
            for weight in self.backbone.weights
            if id(weight) not in trained
        ]
        return f"^({'|'.join(map(re.escape, paths))})$"


def load_pretrained(name: str, added_memory: dict | None) -> PretrainedModel:
    """Loads a model to fine-tune."""
    preset, config = _open(name, "--model")
    kinds = "a run directory, a preset or a directory of transformers"
    with saying_why(name, "--model", kinds):
        if "model_type" in config:
            family = _family_of_hugging_face(config)
            backbone = models.from_transformers(preset)
        else:
            backbone = keras_hub.models.Backbone.from_preset(preset)
            family = family_of(backbone, ENCODERS)
        tokenizer = load_tokenizer(preset)
    backbone = _with_memory(name, backbone, added_memory)
    return PretrainedModel(family, backbone, tokenizer, bool(added_memory))


class LanguageModel(NamedTuple):
    """A language model, plain or with memory, and its tokenizer."""

    task: keras_hub.models.Task
    family: EncoderFamily | DecoderFamily
    tokenizer: keras_hub.tokenizers.Tokenizer

    @property
    def backbone(self) -> keras_hub.models.Backbone:
        """The task's backbone."""
        return self.task.backbone


def load_language_model(
    name: str,
    flag: str = "--model",
    fresh_head: bool = False,
) -> LanguageModel:
    """Loads a causal or a masked language model."""
    preset = find_preset(name, flag)
    if is_causal_preset(preset):
        check_unchanged(pathlib.Path(preset), flag)
        with saying_why(name, flag, "a run directory or a preset"):
            causal = keras_hub.models.CausalLM.from_preset(preset)
            decoder = family_of(causal.backbone, DECODERS)
            return LanguageModel(causal, decoder, load_tokenizer(preset))
    preset, config = _open(name, flag)
    kinds = "a run directory, a masked-LM preset or a directory of transformers"
    with saying_why(name, flag, kinds):
        if not fresh_head and not pathlib.Path(preset).is_dir():
            raise ValueError(
                "whether it has the head of a language model can only be seen "
                "in a directory on this machine: save the model with "
                "`save_to_preset`, and pass that"
            )
        if not (fresh_head or _has_masked_lm_head(preset, config)):
            raise ValueError(
                "it has no masked-LM head, only other parts: use the model "
                "that was pretrained"
            )
        if "model_type" in config:
            family = _family_of_hugging_face(config)
            task = models.from_transformers(
                preset, task=keras_hub.models.MaskedLM
            )
        else:
            task = keras_hub.models.MaskedLM.from_preset(preset)
            family = family_of(task.backbone, ENCODERS)
        return LanguageModel(task, family, load_tokenizer(preset))


@contextlib.contextmanager
def saying_why(name: str, flag: str, kinds: str) -> Iterator[None]:
    """Names the flag in errors.

    KerasHub raises any kind for names and files that it cannot use.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"{flag} must be {kinds}, received '{name}': {reason}"
        ) from error


def _open(name: str, flag: str) -> tuple[str, dict]:
    """The preset or directory that a flag names, and its configuration."""
    preset = find_preset(name, flag)
    check_unchanged(pathlib.Path(preset), flag)
    with saying_why(name, flag, "a model of the Hugging Face Hub"):
        # KerasHub would give models of transformers another activation.
        preset = str(local_directory(preset))
    return preset, _read_config(preset, flag)


def is_causal_preset(preset: str | pathlib.Path) -> bool:
    """Whether a local preset contains a causal language model."""
    task = read_json(pathlib.Path(preset) / "task.json", default={})
    return task.get("class_name", "").endswith("CausalLM")


def _has_masked_lm_head(preset: str, config: dict) -> bool:
    if "model_type" in config:
        return HuggingFaceDirectory(preset).has_masked_lm_head()
    # keras-hub would silently give all others a new head.
    task = read_json(pathlib.Path(preset) / "task.json", default={})
    return task.get("class_name", "").endswith("MaskedLM")


def load_tokenizer(
    preset: str | pathlib.Path,
) -> keras_hub.tokenizers.Tokenizer:
    """Loads the tokenizer of a preset, which may contain nothing else."""
    path = pathlib.Path(preset)
    config = _read_config(preset)
    if "model_type" in config:
        family = _family_of_hugging_face(config)
        return read_tokenizer(
            path, HUGGING_FACE_FAMILIES[family.name].tokenizer
        )
    if not (path / "tokenizer.json").exists():
        return keras_hub.tokenizers.Tokenizer.from_preset(preset)
    return load_preset_tokenizer(path)


def _read_config(preset: str | pathlib.Path, flag: str = "--model") -> dict:
    """The configuration of a model, or nothing where there is none."""
    path = pathlib.Path(preset)
    config = read_json(path / "config.json", flag, default={})
    if config:
        try:
            read_config(path)
        except ValueError as error:
            raise UserError(f"{flag}: {error}") from error
    return config


def _family_of_hugging_face(config: dict) -> EncoderFamily:
    kinds = {family.name: family for family in ENCODERS}
    if config["model_type"] not in kinds:
        raise ValueError(
            f"its config.json has model_type '{config['model_type']}', but "
            f"only {', '.join(kinds)} are known"
        )
    return kinds[config["model_type"]]


def _with_memory(
    name: str, backbone: keras_hub.models.Backbone, added_memory: dict | None
) -> keras_hub.models.Backbone:
    """Returns the backbone as a `MemoryBackbone`, with added memory."""
    has_memory = bool(getattr(backbone, "memory_outputs", None))
    if has_memory and added_memory:
        raise UserError(
            f"--memory-block and --memory-layers add memory to plain models, "
            f"but '{name}' has one in layers "
            f"{' '.join(map(str, backbone.memory_layers))}: leave the flags out"
        )
    is_ours = isinstance(backbone, models.MemoryBackbone)
    if has_memory or (is_ours and not added_memory):
        return backbone
    try:
        return models.add_memory(
            backbone, **(added_memory or {"memory_layers": ()})
        )
    except ValueError as error:
        raise UserError(
            f"the memory cannot be added to '{name}': {error}"
        ) from error
