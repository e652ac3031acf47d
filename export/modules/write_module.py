"""Writes a SavedModel with its model card, whole or not at all."""

import pathlib

import tensorflow as tf

from export.graph.encoder import Encoder
from export.modules.memories_file import write_memories
from export.trained.recipe import ExportRecipe
from export.trained.trained_model import TrainedModel
from keras_pkm.files.checksums import seal_directory
from keras_pkm.files.whole_files import new_directory
from training.runs.user_error import UserError


def write_module(
    module: tf.train.Checkpoint,
    model: TrainedModel,
    encoder: Encoder | None,
    card: str,
    recipe: ExportRecipe,
) -> str:
    """Writes an exported model, and returns its description and size."""
    for file in model.source.vocabulary_files:
        setattr(module, file.stem, tf.saved_model.Asset(str(file)))
    out = pathlib.Path(recipe.out)
    try:
        with new_directory(out) as partial:
            tf.saved_model.save(module, str(partial), module.signatures_to_save)
            (partial / "README.md").write_text(card, encoding="utf-8")
            if encoder is not None and encoder.tables:
                write_memories(partial, model, encoder)
            seal_directory(partial)
    except OSError as error:
        raise UserError(
            f"--out must be a directory that can be written, received "
            f"'{out}' ({error.strerror}): pass another one"
        ) from error
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    return f"{out}: {recipe.what}, {size / 1e6:,.1f} MB"
