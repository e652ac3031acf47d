#!/usr/bin/env python
"""Runs one job of a comparison, which starts this command for it."""

import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.quiet  # noqa: F401

from typing import Literal

import tyro

from training.commands.command_line import print_errors
from training.studies.edits.study import EditsStudy
from training.studies.forgetting.study import ForgettingStudy
from training.studies.recall.study import RecallStudy

STUDIES = {
    each.name: each for each in (EditsStudy, ForgettingStudy, RecallStudy)
}


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    return print_errors(lambda: tyro.cli(do_job, args=args))


def do_job(
    out: pathlib.Path, study: Literal["edits", "forgetting", "recall"], job: str
) -> None:
    """Runs one job of a comparison, which starts this command for it.

    Args:
        out: Directory of the comparison.
        study: What is compared.
        job: The job's name.
    """
    STUDIES[study].in_directory(out).do(job)


if __name__ == "__main__":
    sys.exit(main())
