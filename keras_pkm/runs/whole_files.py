"""Files and directories that are there as a whole, or not at all."""

import contextlib
import os
import pathlib
import shutil
from collections.abc import Iterator

_PARTIAL = ".partial"
_REPLACED = ".replaced"


def write_whole(path: pathlib.Path, text: str) -> None:
    """Writes a text file, which is then there as a whole or not at all."""
    with replacing_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def replacing_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Gives a file to write, which takes the place of `path` at the end."""
    partial = path.with_name(f"{path.name}{_PARTIAL}")
    partial.unlink(missing_ok=True)
    yield partial
    os.replace(partial, path)


@contextlib.contextmanager
def replacing_directory(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Gives a name for a directory, which takes the place of `path` at the end.

    Whoever writes it also creates it.
    """
    partial = path.with_name(f"{path.name}{_PARTIAL}")
    replaced = path.with_name(f"{path.name}{_REPLACED}")
    for leftover in (partial, replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    yield partial
    if path.exists():
        path.rename(replaced)
    partial.rename(path)
    shutil.rmtree(replaced, ignore_errors=True)


@contextlib.contextmanager
def new_directory(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Gives a directory to fill, which is called `path` at the end.

    Raises:
        OSError: it cannot be written, or `path` holds files by then.
    """
    partial = path.with_name(f"{path.name}{_PARTIAL}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    if path.exists():
        path.rmdir()
    partial.rename(path)


def is_unfinished(path: pathlib.Path) -> bool:
    """Whether a path is what an interrupted write has left."""
    return path.name.endswith((_PARTIAL, _REPLACED))
