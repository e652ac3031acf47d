#!/usr/bin/env python
"""Teaches a trained model new facts, or a text, and shows what it forgets.

    python training/teach.py --model runs/books --facts facts.tsv --out taught

writes the facts into the model's memory. `--compare` measures what models learn
and forget with several teaching methods.
"""

import pathlib
import shlex
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.quiet  # noqa: F401

import tyro

from training.commands.command_line import print_errors
from training.commands.command_line import run_until_stopped
from training.commands.run_jobs import run_jobs
from training.forgetting.directory import ForgettingDirectory
from training.forgetting.findings import collect_findings
from training.forgetting.plan import plan_jobs
from training.forgetting.recipe import ForgettingRecipe
from training.forgetting.report import write_report
from training.forgetting.settings import check_setting
from training.reports.markdown import print_markdown
from training.teaching.recipe import TeachingRecipe
from training.teaching.taught_run import make_taught_run

_COMPARE = "--compare"


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    args = sys.argv[1:] if args is None else args
    if _COMPARE not in args:
        recipe = tyro.cli(TeachingRecipe, args=args)
        return print_errors(lambda: print_markdown(make_taught_run(recipe)))
    rest = [arg for arg in args if arg != _COMPARE]
    recipe = tyro.cli(ForgettingRecipe, args=rest)
    again = shlex.join(["python", "training/teach.py", *args])
    return run_until_stopped(
        lambda signals: compare(recipe), f"\nTo resume: {again}"
    )


def compare(recipe: ForgettingRecipe) -> dict:
    """Runs the remaining jobs of a comparison, and returns its findings.

    Raises:
        UserError: the recipe cannot be carried out; nothing is written then.
        RunError: a job failed.
        Interrupted: a signal came.
    """
    recipe.check()
    directory = ForgettingDirectory(recipe.out)
    with directory.hold(recipe):
        check_setting(recipe)
        directory.write_recipe(recipe)
        run_jobs(plan_jobs(recipe), directory.logs, recipe.at_once)
        findings = collect_findings(recipe)
        write_report(recipe, findings)
    print_markdown(directory.table.read_text(encoding="utf-8"))
    print(f"The report is in {directory.table}.")
    return findings


if __name__ == "__main__":
    sys.exit(main())
