#!/usr/bin/env python
"""Applies a patch to an exported model, or undoes it.

    python export/patch.py --model served --apply facts.safetensors --out newer

writes a copy of the exported model that also knows what training/teach.py wrote
into the patch.
"""

import dataclasses
import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.quiet  # noqa: F401

import tyro

import keras_pkm
from export.commands.flag_errors import naming_flags
from training.commands.command_line import print_errors
from training.runs.outputs import check_output_directory
from training.runs.outputs import writing_results
from training.runs.user_error import UserError


@dataclasses.dataclass(frozen=True)
class PatchRecipe:
    """Apply a patch to an exported model, or undo it.

    $ python export/patch.py --model served --apply P.safetensors --out newer
    $ python export/patch.py --model newer --revert P.safetensors --out older

    Writes a patched copy of the exported model, in which only rows of its
    memories differ.

    --verbose also shows the messages of TensorFlow.
    """

    # The directory of a model that export/saved_model.py wrote.
    model: pathlib.Path
    # Directory to write; new or empty.
    out: pathlib.Path
    # The patch to apply: a file that training/teach.py wrote.
    apply: pathlib.Path | None = None
    # The patch to undo.
    revert: pathlib.Path | None = None


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(PatchRecipe, args=args)
    return print_errors(lambda: print(patch(recipe)))


def patch(recipe: PatchRecipe) -> str:
    """Writes a patched copy, and returns a description of the change."""
    given = [path for path in (recipe.apply, recipe.revert) if path is not None]
    if len(given) != 1:
        raise UserError(
            "one of --apply and --revert must be given, received "
            f"{'none' if recipe.apply is None else 'both'}"
        )
    check_output_directory(recipe.out, "--out")
    flag = "--revert" if recipe.apply is None else "--apply"
    names = {
        "path": "--out",
        "patch": flag,
        "values_dtype": "--values-dtype",
        "prune_unused": "--prune-unused",
        "keras_pkm.export.saved_model": "export/saved_model.py",
        "MemoryPatch.apply": "training/teach.py --apply",
    }
    with naming_flags(recipe, **names):
        with writing_results(recipe.out):
            count = keras_pkm.export.patch(
                recipe.model, given[0], recipe.out, revert=flag == "--revert"
            )
    done = "applied" if recipe.revert is None else "reverted"
    return f"{recipe.out}: {count:,} rows were {done}."


if __name__ == "__main__":
    sys.exit(main())
