#!/usr/bin/env python
"""Exports a trained model as a SavedModel that needs none of our code.

    python export/saved_model.py --model runs/books --what encoder --out served

writes a directory that `hub.load`, `hub.KerasLayer`, `keras.layers.TFSMLayer`
and TensorFlow Serving load.
"""

import functools
import pathlib
import sys
from typing import Any

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.quiet  # noqa: F401

import tyro
from tqdm import tqdm

import keras_pkm
from export.commands.flag_errors import naming_flags
from export.commands.recipe import ExportRecipe
from export.commands.source import Source
from export.commands.text_lines import read_lines
from training.commands.command_line import print_errors
from training.runs.user_error import UserError


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(ExportRecipe, args=args)
    return print_errors(lambda: print(export(recipe)))


def export(recipe: ExportRecipe) -> str:
    """Exports a model as the recipe says, and returns what was written."""
    recipe.check()
    source = Source.open(recipe.model)
    lines = {
        name: read_lines(paths) if paths else ()
        for name, paths in (
            ("prune_unused", recipe.prune_unused),
            ("compare", recipe.compare),
        )
    }
    tokenizer = source.load_tokenizer()
    model = source.load(recipe.what)
    # An encoder takes inputs of any length.
    is_read = recipe.what != "encoder" or any(lines.values())
    length = source.sequence_length if is_read else None
    # What training knows of the texts.
    results = source.results if recipe.what == "classifier" else {}
    trained = source.recipe if recipe.what == "qa" else {}
    try:
        with naming_flags(
            recipe, task="--model", tokenizer="--model", path="--out"
        ):
            exported = keras_pkm.export.saved_model(
                model,
                recipe.out,
                what=recipe.what,
                tokenizer=tokenizer,
                sequence_length=recipe.sequence_length or length,
                labels=recipe.labels or results.get("classes") or (),
                texts=recipe.texts or results.get("texts"),
                stride=recipe.stride or trained.get("stride"),
                answer_length=(
                    recipe.answer_length or trained.get("answer_length")
                ),
                values_dtype=recipe.values_dtype,
                keep_top=recipe.keep_top,
                **lines,
                # The rest of paths is private.
                name="/".join(pathlib.Path(source.name).resolve().parts[-2:]),
                recipe=without_folders(source.recipe),
                report=report_without_folders(source),
                progress=functools.partial(tqdm, disable=None),
            )
    except OSError as error:
        raise UserError(
            f"--out must be a directory that can be written, received "
            f"'{recipe.out}' ({error.strerror}): pass another one"
        ) from error
    if exported.change:
        print(exported.change)
    return f"{exported.path}: {exported.what}, {exported.size / 1e6:,.1f} MB"


# Settings that name files, models or datasets.
_FILES = (
    *("out", "model", "text", "validation", "vocabulary", "data_dir"),
    *("data_from", "init_from", "glue", "squad", "keep", "facts"),
    *("phrasings", "asked", "background", "apply", "revert"),
)
_PUBLIC = ("tfds:", "hf://", "kaggle://")


def without_folders(recipe: dict[str, Any]) -> dict[str, Any]:
    """The recipe of a run, with the last part of each path alone."""
    return {
        name: ",".join(map(_last_part, value.split(",")))
        if name in _FILES and isinstance(value, str)
        else value
        for name, value in recipe.items()
    }


def report_without_folders(source: Source) -> str:
    """The figures of a run, which name its model and its patches."""
    named = [source.recipe.get(name) for name in _FILES]
    named += [patch["file"] for patch in source.results.get("patches", ())]
    paths = [each for each in named if isinstance(each, str) and "/" in each]
    report = source.report
    # A path may begin with another one.
    for path in sorted(paths, key=len, reverse=True):
        report = report.replace(path, _last_part(path))
    return report


def _last_part(path: str) -> str:
    if path.startswith(_PUBLIC):
        return path
    return path.rstrip("/").rpartition("/")[2]


if __name__ == "__main__":
    sys.exit(main())
