"""What the commands that train share: signals, errors and exit codes."""

import dataclasses
import logging
import pathlib
import shlex
import sys
import time
from collections.abc import Callable

from keras_pkm.runs.user_error import RunError
from keras_pkm.runs.user_error import UserError
from training.commands.signals import Interrupted
from training.commands.signals import catch_signals


def run_to_the_end(
    work: Callable, recipe, args: list[str] | None, *, script: str, name: str
) -> int:
    """Does what a recipe says and returns the exit code.

    Args:
        work: takes the recipe, with a run directory, and `Signals`.
        recipe: a dataclass with `run_dir` and `strategy`.
        args: what stood on the command line, or None for `sys.argv`'s.
        script: the command, as the user calls it.
        name: What a run directory is named after, if none is given.
    """
    logging.basicConfig(format="%(message)s")
    logging.getLogger("keras_pkm").setLevel(logging.INFO)
    args = sys.argv[1:] if args is None else args
    try:
        recipe = name_run_directory(recipe, name)
        with catch_signals() as signals:
            work(recipe, signals)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        hint = how_to_go_on(script, args, recipe.run_dir)
        print(f"error: {error}. {hint}", file=sys.stderr)
        return 1
    except Interrupted as interrupted:
        hint = how_to_go_on(script, args, recipe.run_dir)
        print(f"Stopped by {interrupted}. {hint}", file=sys.stderr)
        return interrupted.exit_code
    return 0


def name_run_directory(recipe, name: str):
    """Returns the recipe with a run directory, named after it if need be.

    Raises:
        UserError: several machines need one that they all know.
    """
    if recipe.run_dir is not None:
        return recipe
    if recipe.strategy == "multi_worker":
        raise UserError(
            "--run-dir must be given with --strategy multi_worker, received "
            "none: pass a directory that all workers see"
        )
    name = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    return dataclasses.replace(recipe, run_dir=str(pathlib.Path("runs") / name))


def how_to_go_on(script: str, args: list[str], run_dir: str) -> str:
    """Returns the command that continues a run."""
    if not any(arg.split("=")[0] in ("--run-dir", "--run_dir") for arg in args):
        args = [*args, "--run-dir", run_dir]
    command = shlex.join(["python", script, *args])
    return f"To go on from the last checkpoint: {command}"
