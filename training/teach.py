#!/usr/bin/env python
"""Teaches a trained model new facts, or a text, and shows what it forgets.

    python training/teach.py --model runs/books --facts facts.tsv --out taught

writes the facts into the model's memory. `--compare` measures what models learn
and forget with several teaching methods, and `--compare-edits` compares ways to
teach facts to a finished language model.
"""

import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.quiet  # noqa: F401

import tyro

from training.commands.command_line import command_of
from training.commands.command_line import print_errors
from training.reports.markdown import print_markdown
from training.runs.run_directory import RunDirectory
from training.studies.edits.recipe import EditsRecipe
from training.studies.forgetting.recipe import ForgettingRecipe
from training.teaching.recipe import TeachingRecipe
from training.teaching.taught_run import make_taught_run

_SCRIPT = "training/teach.py"
_COMPARE_EDITS = "--compare-edits"
_COMPARISONS = ("--compare", _COMPARE_EDITS)


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    args = sys.argv[1:] if args is None else args
    chosen = next((arg for arg in args if arg in _COMPARISONS), None)
    if chosen is None:
        recipe = tyro.cli(TeachingRecipe, args=args)
        return print_errors(lambda: _teach(recipe))
    rest = [arg for arg in args if arg != chosen]
    # Studies draw pictures, with the extra `plots`, which teaching does not
    # need.
    if chosen == _COMPARE_EDITS:
        edits = tyro.cli(EditsRecipe, args=rest)
        from training.studies.edits.study import EditsStudy

        return EditsStudy(edits).run_as(_SCRIPT, args)
    forgetting = tyro.cli(ForgettingRecipe, args=rest)
    from training.studies.forgetting.study import ForgettingStudy

    return ForgettingStudy(forgetting).run_as(_SCRIPT, args)


def _teach(recipe: TeachingRecipe) -> None:
    print_markdown(make_taught_run(recipe))
    run = RunDirectory(recipe.out)
    print(f"\nThe model is in {run.root}.")
    if run.patch.exists():
        args = ["--model", str(run.root), "--revert", str(run.patch)]
        command = command_of(_SCRIPT, [*args, "--out", "reverted"])
        print(f"To revert it: {command}")


if __name__ == "__main__":
    sys.exit(main())
