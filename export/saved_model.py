"""Exports a trained model as a SavedModel that needs none of our code.

    python export/saved_model.py --model runs/books --what encoder --out served

writes a directory that `hub.load`, `hub.KerasLayer`, `keras.layers.TFSMLayer`
and TensorFlow Serving load.
"""

import contextlib
import pathlib
import shutil
import sys
from collections.abc import Iterator

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tensorflow as tf
import tyro

from export.modules.make_module import make_module
from export.modules.model_card import format_model_card
from export.smaller.smaller_encoder import make_encoder
from export.trained.recipe import ExportRecipe
from export.trained.source import Source
from export.trained.trained_model import TrainedModel
from keras_pkm.runs.user_error import UserError


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(ExportRecipe, args=args)
    try:
        export(recipe)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def export(recipe: ExportRecipe):
    """Exports a model as the recipe says.

    Raises:
        UserError: it cannot be exported; nothing is written then.
    """
    recipe.check()
    source = Source.open(recipe.model)
    model = TrainedModel.load(source, recipe)
    encoder, change = make_encoder(model, recipe)
    if change:
        print(change)
    module = make_module(model, recipe, encoder)
    for file in source.vocabulary_files:
        setattr(module, file.stem, tf.saved_model.Asset(str(file)))
    out = pathlib.Path(recipe.out)
    with writing(out) as partial:
        tf.saved_model.save(module, str(partial), module.signatures_to_save)
        (partial / "README.md").write_text(
            format_model_card(model, recipe, encoder, module, change),
            encoding="utf-8",
        )
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{out}: {recipe.what}, {size / 1e6:,.1f} MB")


@contextlib.contextmanager
def writing(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Gives a directory to fill, which in the end is there as a whole.

    Raises:
        UserError: it cannot be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        if path.exists():
            # It is empty.
            path.rmdir()
        partial.rename(path)
    except OSError as error:
        raise UserError(
            f"--out must be a directory that can be written, received "
            f"'{path}' ({error.strerror}): pass another one"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
