#!/usr/bin/env python
"""Shows how a model uses its memories, as a page with plots and tables.

    python training/analyze_memory.py --model runs/books --text held-out.txt

writes a directory with `report.html`, which opens offline, the plots as PNG and
SVG, and `report.json` with every number.
"""

import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.quiet  # noqa: F401

import tyro

from training.analysis.analyze import analyze
from training.analysis.recipe import AnalysisRecipe
from training.commands.command_line import print_errors
from training.runs.outputs import writing_results


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(AnalysisRecipe, args=args)
    return print_errors(lambda: write_analysis(recipe))


def write_analysis(recipe: AnalysisRecipe) -> None:
    """Measures what the recipe asks for, and writes the report."""
    report = analyze(recipe)
    with writing_results(recipe.out):
        page = report.write(recipe.out)
    print(f"The report is in {page}.")


if __name__ == "__main__":
    sys.exit(main())
