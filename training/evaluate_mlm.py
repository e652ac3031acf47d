#!/usr/bin/env python
"""Measures a language model on text: perplexity and memory usage.

python training/evaluate_mlm.py --model runs/books --text held-out.txt
"""

import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.quiet  # noqa: F401

import tyro

from training.commands.command_line import print_errors
from training.evaluation.evaluate import evaluate
from training.evaluation.evaluate import format_results
from training.evaluation.recipe import EvaluationRecipe
from training.reports.markdown import print_markdown
from training.runs.files import write_json
from training.runs.outputs import check_output_file
from training.runs.outputs import writing_results


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(EvaluationRecipe, args=args)
    return print_errors(lambda: measure(recipe))


def measure(recipe: EvaluationRecipe) -> None:
    """Measures what the recipe asks for, and prints and writes the figures."""
    check_output_file(recipe.out, "--out")
    results = evaluate(recipe)
    print_markdown(format_results(results))
    if recipe.out is not None:
        with writing_results(recipe.out):
            recipe.out.parent.mkdir(parents=True, exist_ok=True)
            write_json(recipe.out, results)


if __name__ == "__main__":
    sys.exit(main())
