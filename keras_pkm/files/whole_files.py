"""Writes files and directories whole or not at all.

While it is written, a file has a temporary name with a random part, such as
`.best.3f9c02ab.partial`, which collides with no other file.
"""

import contextlib
import os
import pathlib
import re
import secrets
import shutil
from collections.abc import Iterator

_PARTIAL = "partial"
_REPLACED = "replaced"
_TEMPORARY = re.compile(rf"\.(.+)\.[0-9a-f]{{8}}\.({_PARTIAL}|{_REPLACED})")


def write_whole(path: pathlib.Path, text: str) -> None:
    """Writes a text file, whole or not at all."""
    with replacing_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def partial_name(name: str) -> str:
    """Returns a temporary name for a file while it is written."""
    return _named(name, _PARTIAL)


@contextlib.contextmanager
def replacing_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a file to write, which replaces `path` at the end."""
    partial = _temporary_name(path, _PARTIAL)
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_directory(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a directory to fill, which replaces `path` at the end."""
    with _filled_directory(path) as partial:
        yield partial
        replaced = _temporary_name(path, _REPLACED)
        if path.exists():
            path.rename(replaced)
        partial.rename(path)
    shutil.rmtree(replaced, ignore_errors=True)


@contextlib.contextmanager
def new_directory(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a directory to fill, which is renamed to `path` at the end.

    Raises:
        OSError: it cannot be written, or `path` contains files by then.
    """
    with _filled_directory(path) as partial:
        yield partial
        if path.exists():
            path.rmdir()
        partial.rename(path)


def is_temporary(path: pathlib.Path) -> bool:
    """Whether a path is a leftover of an interrupted write."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_leftovers(root: pathlib.Path) -> None:
    """Removes leftovers of interrupted writes, at any depth of a directory.

    A directory that was being replaced at that moment gets its name back. No
    other process may write into `root` meanwhile.
    """
    for path in list(root.rglob(f"*.{_PARTIAL}")):
        # It may have been in another one, which is gone.
        if is_temporary(path) and path.exists():
            _remove(path)
    for path in list(root.rglob(f"*.{_REPLACED}")):
        found = _TEMPORARY.fullmatch(path.name)
        if found and path.exists():
            if path.with_name(found[1]).exists():
                _remove(path)
            else:
                path.rename(path.with_name(found[1]))


@contextlib.contextmanager
def _filled_directory(path: pathlib.Path) -> Iterator[pathlib.Path]:
    partial = _temporary_name(path, _PARTIAL)
    partial.mkdir(parents=True)
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _temporary_name(path: pathlib.Path, suffix: str) -> pathlib.Path:
    return path.with_name(_named(path.name, suffix))


def _named(name: str, suffix: str) -> str:
    return f".{name}.{secrets.token_hex(4)}.{suffix}"


def _remove(path: pathlib.Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
