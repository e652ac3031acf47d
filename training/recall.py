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
    import training.commands.quiet  # noqa: F401

from training.studies.recall.recipe import parse_recipe
from training.studies.recall.study import RecallStudy


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    args = sys.argv[1:] if args is None else args
    study = RecallStudy(parse_recipe(args))
    return study.run_as("training/recall.py", args)


if __name__ == "__main__":
    sys.exit(main())
