"""Repeats the paper's comparison: six models, trained, measured, fine-tuned.

    python training/reproduce.py --out comparison

trains them at laptop size on the documentation that comes with Python, and
writes a report with the paper's tables and figures beside. The same command
goes on where it was stopped.
"""

import contextlib
import dataclasses
import fcntl
import json
import logging
import os
import pathlib
import shlex
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tyro

from keras_pkm.runs.user_error import RunError
from keras_pkm.runs.user_error import UserError
from keras_pkm.runs.whole_files import write_whole
from training.commands.recipe_checks import check_at_least
from training.commands.run_jobs import run_jobs
from training.commands.signals import Interrupted
from training.commands.signals import catch_signals
from training.reproduction.numbers import collect_figures
from training.reproduction.plan import plan_jobs
from training.reproduction.recipe import ReproductionRecipe
from training.reproduction.report import write_report

# The others change what has already been found.
_MAY_CHANGE = ("out", "data_dir", "processes", "seeds", "repeat", "tasks")


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    logging.basicConfig(format="%(message)s")
    args = sys.argv[1:] if args is None else args
    again = shlex.join(["python", "training/reproduce.py", *args])
    try:
        with catch_signals():
            reproduce(tyro.cli(ReproductionRecipe, args=args))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"error: {error}\nTo go on: {again}", file=sys.stderr)
        return 1
    except Interrupted as interrupted:
        print(f"Stopped by {interrupted}. To go on: {again}", file=sys.stderr)
        return interrupted.exit_code
    return 0


def reproduce(recipe: ReproductionRecipe) -> dict:
    """Carries out what is left of the comparison, and returns its figures.

    Raises:
        UserError: the recipe cannot be carried out; nothing is written then.
        RunError: one of the commands failed.
        Interrupted: a signal came.
    """
    check_at_least(recipe, seeds=1, fine_tuning_seeds=1, steps=1, processes=1)
    with _held(recipe):
        run_jobs(plan_jobs(recipe), recipe.out / "logs", recipe.at_once)
        figures = collect_figures(recipe)
        path = write_report(recipe, figures)
    print((recipe.out / "report.md").read_text(encoding="utf-8"))
    print(f"The report is in {path}.")
    return figures


@contextlib.contextmanager
def _held(recipe):
    """Makes the directory this recipe's, and this process's for the while."""
    asked = json.loads(json.dumps(dataclasses.asdict(recipe), default=str))
    path = recipe.out / "comparison.json"
    if path.exists():
        other = json.loads(path.read_text(encoding="utf-8"))
        changed = [
            f"--{name.replace('_', '-')} was {other.get(name)}, now {value}"
            for name, value in asked.items()
            if name not in _MAY_CHANGE and other.get(name) != value
        ]
        if changed:
            raise UserError(
                f"--out must be new, empty, or hold this comparison, but "
                f"'{recipe.out}' holds another one ({'; '.join(changed)}): "
                "pass another one"
            )
    elif recipe.out.exists() and any(recipe.out.iterdir()):
        raise UserError(
            f"--out must be new, empty, or hold this comparison, but "
            f"'{recipe.out}' holds other files: pass another one"
        )
    recipe.out.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asked, indent=2) + "\n")
    with open(recipe.out / "lock", "w") as lock:
        # Commands inherit it: it is held until the last of them has ended, even
        # if this process is killed.
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"--out '{recipe.out}' is in use by another process: wait for "
                "it to end, or stop it"
            ) from error
        os.set_inheritable(lock.fileno(), True)
        yield


if __name__ == "__main__":
    sys.exit(main())
