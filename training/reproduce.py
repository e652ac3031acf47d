#!/usr/bin/env python
"""Repeats a paper's comparison: trains, measures and fine-tunes its models.

    python training/reproduce.py --out comparison
    python training/reproduce.py --out depths --paper lample

The first trains the models of Kim and Jung (2020) at laptop size on the
documentation that comes with Python, and writes a report with the paper's
tables and figures beside ours. The second compares memories in one, two and
three layers of a GPT-2 with deeper and wider models, as Lample et al. (2019)
do. The same command resumes a comparison that was stopped.
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

from training.commands.command_line import command_of
from training.commands.command_line import run_until_stopped
from training.commands.run_jobs import run_jobs
from training.reports.markdown import print_markdown
from training.reproduction.comparison_directory import ComparisonDirectory
from training.reproduction.inputs import check_inputs
from training.reproduction.numbers import collect_figures
from training.reproduction.plan import plan_jobs
from training.reproduction.recipe import ReproductionRecipe
from training.reproduction.report import write_report


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    args = sys.argv[1:] if args is None else args
    recipe = tyro.cli(ReproductionRecipe, args=args)
    again = command_of("training/reproduce.py", args)
    return run_until_stopped(
        lambda signals: reproduce(recipe), f"\nTo resume: {again}"
    )


def reproduce(recipe: ReproductionRecipe) -> dict:
    """Runs the remaining commands of the comparison; returns its figures."""
    recipe.check()
    directory = ComparisonDirectory(recipe.out)
    with directory.hold(recipe):
        check_inputs(recipe)
        directory.write_recipe(recipe)
        run_jobs(plan_jobs(recipe), directory.logs, recipe.at_once)
        figures = collect_figures(recipe)
        write_report(recipe, figures)
    print_markdown(directory.table.read_text(encoding="utf-8"))
    print(f"The report is in {directory.page}.")
    return figures


if __name__ == "__main__":
    sys.exit(main())
