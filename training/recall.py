#!/usr/bin/env python
"""Measures how many facts a model can know, with and without memory.

    python training/recall.py --out recall

takes about ten minutes on two cores. Three models train for the same time on
random facts: a plain model, a model with memory, and a plain model that is
widened until its steps take as long. The same command resumes a comparison that
was stopped.
"""

import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.missing_extra  # noqa: F401
    import training.commands.quiet  # noqa: F401

from training.commands.command_line import command_of
from training.commands.command_line import run_until_stopped
from training.commands.run_jobs import run_jobs
from training.knowledge.contenders import check_sizes
from training.knowledge.findings import collect_findings
from training.knowledge.plan import plan_jobs
from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.recipe import parse_recipe
from training.knowledge.report import write_report
from training.reports.markdown import print_markdown


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    args = sys.argv[1:] if args is None else args
    recipe = parse_recipe(args)
    again = command_of("training/recall.py", args)
    return run_until_stopped(
        lambda signals: compare(recipe), f"\nTo resume: {again}"
    )


def compare(recipe: RecallRecipe) -> dict:
    """Runs the remaining jobs of the comparison, and returns its findings."""
    recipe.check()
    directory = RecallDirectory(recipe.out)
    with directory.hold(recipe):
        for number in recipe.numbers_of_facts:
            recipe.open_facts(number)
        check_sizes(recipe)
        directory.write_recipe(recipe)
        run_jobs(plan_jobs(recipe), directory.logs, recipe.at_once)
        findings = collect_findings(recipe)
        write_report(recipe, findings)
    print_markdown(directory.table.read_text(encoding="utf-8"))
    print(f"The report is in {directory.table}.")
    return findings


if __name__ == "__main__":
    sys.exit(main())
