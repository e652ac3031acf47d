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
    import training.commands.quiet  # noqa: F401

import tyro

from training.studies.papers.recipe import ReproductionRecipe
from training.studies.papers.study import PaperStudy


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    args = sys.argv[1:] if args is None else args
    study = PaperStudy(tyro.cli(ReproductionRecipe, args=args))
    return study.run_as("training/reproduce.py", args)


if __name__ == "__main__":
    sys.exit(main())
