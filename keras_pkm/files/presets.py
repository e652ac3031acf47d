"""Presets on disk: tasks with their preprocessor, and tokenizers."""

import json
import pathlib

import keras
import keras_hub

from keras_pkm.files.checksums import seal_directory
from keras_pkm.files.whole_files import replacing_directory


def save_preset(
    task: keras_hub.models.Task,
    preprocessor: keras_hub.models.Preprocessor | None,
    path: pathlib.Path,
) -> None:
    """Saves a task with its preprocessor as a preset, whole or not at all.

    Args:
        task: A keras-hub task that trains on preprocessed data.
        preprocessor: The preprocessor to save with it.
        path: The directory to write, or to replace.
    """
    with replacing_directory(path) as partial:
        task.preprocessor = preprocessor
        try:
            task.save_to_preset(str(partial))
        finally:
            # Otherwise the task's `fit` would preprocess its data again.
            task.preprocessor = None
        seal_directory(partial)


def save_tokenizer(
    tokenizer: keras_hub.tokenizers.Tokenizer, path: pathlib.Path
) -> None:
    """Saves a tokenizer as a preset has it, whole or not at all."""
    with replacing_directory(path) as partial:
        tokenizer.save_to_preset(str(partial))
        seal_directory(partial)


def load_preset_tokenizer(
    path: str | pathlib.Path,
) -> keras_hub.tokenizers.Tokenizer:
    """Loads the tokenizer of a local preset, which may contain nothing else.

    `Tokenizer.from_preset` finds only tokenizers of keras-hub's own backbones.

    Args:
        path: The preset's directory, with a `tokenizer.json`.
    """
    path = pathlib.Path(path)
    tokenizer = keras.saving.deserialize_keras_object(
        json.loads((path / "tokenizer.json").read_text(encoding="utf-8"))
    )
    tokenizer.load_assets(str(path / "assets" / "tokenizer"))
    return tokenizer
