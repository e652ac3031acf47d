"""Loads the tokenizers of presets on disk."""

import json
import pathlib

import keras
import keras_hub


def load_preset_tokenizer(path) -> keras_hub.tokenizers.Tokenizer:
    """Loads the tokenizer of a local preset, which may hold nothing else.

    `Tokenizer.from_preset` finds those of keras-hub's own backbones alone.

    Args:
        path: The preset's directory, with a `tokenizer.json`.
    """
    path = pathlib.Path(path)
    tokenizer = keras.saving.deserialize_keras_object(
        json.loads((path / "tokenizer.json").read_text(encoding="utf-8"))
    )
    tokenizer.load_assets(str(path / "assets" / "tokenizer"))
    return tokenizer
