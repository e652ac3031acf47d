#!/usr/bin/env python
"""Runs one job of `training/recall.py`, which starts it."""

import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.missing_extra  # noqa: F401
    import training.commands.quiet  # noqa: F401

import tyro

from training.commands.command_line import print_errors
from training.knowledge.plan import run_job


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    return print_errors(lambda: tyro.cli(do_job, args=args))


def do_job(out: pathlib.Path, job: str) -> None:
    """Run one job of a comparison of recall, for training/recall.py.

    Args:
        out: Directory of the comparison.
        job: The job's name.
    """
    run_job(out, job)


if __name__ == "__main__":
    sys.exit(main())
