#!/usr/bin/env python
"""Runs one job of `training/teach.py --compare`, which starts it."""

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
from training.forgetting.plan import run_job


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    return print_errors(lambda: tyro.cli(do_job, args=args))


def do_job(out: pathlib.Path, key: str, seed: int) -> None:
    """Run one job of a comparison, for training/teach.py.

    Args:
        out: Directory of the comparison.
        key: The teaching method, or base for the model that is taught.
        seed: The seed.
    """
    run_job(out, key, seed)


if __name__ == "__main__":
    sys.exit(main())
