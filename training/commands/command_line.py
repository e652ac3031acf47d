"""Common parts of the commands that train: signals, errors, exit codes."""

import contextlib
import dataclasses
import logging
import pathlib
import shlex
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from training.commands.signals import Interrupted
from training.commands.signals import Signals
from training.commands.signals import catch_signals
from training.commands.strategy import is_chief
from training.runs.run_directory import RunDirectory
from training.runs.user_error import RunError
from training.runs.user_error import UserError

_NO_MEMORY = (MemoryError, tf.errors.ResourceExhaustedError)


def run_to_the_end(
    work: Callable[[Any, Signals], object],
    recipe: Any,
    args: list[str] | None,
    *,
    script: str,
    name: str,
) -> int:
    """Trains in a run directory, and returns the exit code."""
    logging.getLogger("keras_pkm").setLevel(logging.INFO)
    args = sys.argv[1:] if args is None else args
    try:
        recipe = name_run_directory(recipe, name)
    except UserError as error:
        return _print_user_error(error)
    hint = how_to_go_on(script, args, recipe.out)
    return run_until_stopped(lambda signals: work(recipe, signals), f". {hint}")


def run_until_stopped(work: Callable[[Signals], object], hint: str) -> int:
    """Runs a long task that can be stopped, and returns the exit code."""
    logging.basicConfig(format="%(message)s")
    try:
        with catch_signals() as signals:
            work(signals)
    except UserError as error:
        return _print_user_error(error)
    except RunError as error:
        print(f"error: {error}{hint}", file=sys.stderr)
        return 1
    except Interrupted as interrupted:
        print(f"Stopped by {interrupted}{hint}", file=sys.stderr)
        return interrupted.exit_code
    return 0


def print_errors(work: Callable[[], object]) -> int:
    """Runs a short task that cannot be resumed, and returns the exit code."""
    logging.basicConfig(format="%(message)s")
    try:
        work()
    except UserError as error:
        return _print_user_error(error)
    except (RunError, *_NO_MEMORY) as error:
        if not isinstance(error, RunError):
            error = _too_large(error)
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _too_large(error: Exception) -> RunError:
    said = str(error).strip().splitlines() or ["out of memory"]
    return RunError(
        f"there is not enough memory ({said[0][:200]}). A lower --batch-size "
        "needs less, and so do shorter sequences and smaller models"
    )


def _print_user_error(error: UserError) -> int:
    print(f"error: {error}", file=sys.stderr)
    return 2


@contextlib.contextmanager
def writing_to(
    run: RunDirectory, strategy: tf.distribute.Strategy
) -> Iterator[None]:
    """Locks the directory of a run, and explains errors that end the run.

    With several workers, the chief holds the lock: the others write nothing.
    """
    try:
        with run.lock() if is_chief(strategy) else contextlib.nullcontext():
            yield
    except OSError as error:
        raise RunError(
            f"the run in '{run.root}' cannot continue: {error}"
        ) from error
    except _NO_MEMORY as error:
        raise _too_large(error) from error
    except tf.errors.OpError as error:
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            raise
        raise RunError(
            "another worker does not answer any more "
            f"({error.message.splitlines()[0]}): start all of them again"
        ) from error


def name_run_directory(recipe: Any, name: str) -> Any:
    """Returns the recipe with a run directory; chooses a name if necessary."""
    if recipe.out is not None:
        return recipe
    if recipe.strategy == "multi_worker":
        raise UserError(
            "--out must be given with --strategy multi_worker, received "
            "none: pass a directory that all workers see"
        )
    name = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    return dataclasses.replace(recipe, out=str(pathlib.Path("runs") / name))


def how_to_go_on(script: str, args: list[str], out: str) -> str:
    """Returns the command that resumes a run."""
    if not any(arg.split("=")[0] == "--out" for arg in args):
        args = [*args, "--out", out]
    return f"To resume from the last checkpoint: {command_of(script, args)}"


def command_of(script: str, args: list[str]) -> str:
    """Returns a command line that works where this one was called."""
    called = pathlib.Path(sys.argv[0])
    if called.name == pathlib.Path(script).name:
        script = str(called)
    return shlex.join(["python", script, *args])
