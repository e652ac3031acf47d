"""Checks that results can be written before the work begins."""

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator

from training.runs.user_error import RunError
from training.runs.user_error import UserError


def check_output_file(path: pathlib.Path | None, flag: str) -> None:
    """Checks that a file can be written, or replaced."""
    if path is None:
        return
    if path.is_dir():
        raise UserError(
            f"{flag} must be a file, but '{path}' is a directory: pass the "
            "name of a file in it"
        )
    _check_writable(path.parent, f"{flag} must be a file", path)


def check_output_directory(path: pathlib.Path, flag: str) -> None:
    """Checks that a directory is new or empty, and can be written."""
    if path.is_dir() and any(path.iterdir()):
        raise UserError(
            f"{flag} must be new or empty, but '{path}' is not: pass another "
            "directory, or remove it"
        )
    _check_writable(path, f"{flag} must be a directory", path)


@contextlib.contextmanager
def writing_results(path: pathlib.Path) -> Iterator[None]:
    """Turns a failure to write results into an error that names their path."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"the results could not be written to '{path}' ({error}): free "
            "some space, or pass another path, and run the command again"
        ) from error


def _check_writable(
    folder: pathlib.Path, rule: str, path: pathlib.Path
) -> None:
    created = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"{rule} that can be written, received '{path}' "
            f"({error.strerror}): pass another one"
        ) from error
    finally:
        for each in created:
            with contextlib.suppress(OSError):
                each.rmdir()
