#!/usr/bin/env python
"""Exports a trained model as a SavedModel that needs none of our code.

    python export/saved_model.py --model runs/books --what encoder --out served

writes a directory that `hub.load`, `hub.KerasLayer`, `keras.layers.TFSMLayer`
and TensorFlow Serving load.
"""

import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.missing_extra  # noqa: F401
    import training.commands.quiet  # noqa: F401

import tyro

from export.modules.make_module import make_module
from export.modules.model_card import format_model_card
from export.modules.write_module import write_module
from export.smaller.smaller_encoder import make_encoder
from export.trained.recipe import ExportRecipe
from export.trained.source import Source
from export.trained.trained_model import TrainedModel
from training.runs.user_error import UserError


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(ExportRecipe, args=args)
    try:
        print(export(recipe))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def export(recipe: ExportRecipe) -> str:
    """Exports a model as the recipe says, and returns what was written."""
    recipe.check()
    source = Source.open(recipe.model)
    model = TrainedModel.load(source, recipe)
    encoder, change = make_encoder(model, recipe)
    if change:
        print(change)
    module = make_module(model, recipe, encoder)
    card = format_model_card(model, recipe, encoder, module, change)
    return write_module(module, model, encoder, card, recipe)


if __name__ == "__main__":
    sys.exit(main())
