"""Checksums of files, which reveal damage and later changes.

The file `checksums.json` in a directory lists sizes and SHA-256 sums of files
in it, at any depth. Files that it does not list are not checked.
"""

import hashlib
import json
import os
import pathlib
from collections.abc import Iterable
from collections.abc import Mapping
from typing import TypeAlias

import tensorflow as tf

from keras_pkm.files.any_file_system import write_whole_anywhere

CHECKSUMS = "checksums.json"
#: The size of a file and its SHA-256 sum.
Sum: TypeAlias = dict[str, int | str]

_CHUNK = 2**20
# The depth of a run's files below its root.
_DEPTH = 3


def write_checksums(path: str | os.PathLike[str], names: Iterable[str]) -> None:
    """Writes the checksums of some files to a JSON file.

    Args:
        path: The JSON file. It is written whole or not at all.
        names: The files, as paths relative to the folder of `path`.
    """
    folder = os.path.dirname(os.fspath(path))
    _write(path, {name: _sum_of(os.path.join(folder, name)) for name in names})


def record_checksums(root: pathlib.Path, paths: Iterable[pathlib.Path]) -> None:
    """Adds the checksums of files to the checksums of a directory.

    Args:
        root: The directory.
        paths: Files in it, at any depth. Their old checksums are replaced.
    """
    path = root / CHECKSUMS
    sums = _read(path) if path.exists() else {}
    for each in paths:
        sums[each.relative_to(root).as_posix()] = _sum_of(str(each))
    _write(path, sums)


def seal_directory(root: pathlib.Path, but: Iterable[str] = ()) -> None:
    """Writes the checksums of all files of a directory, at any depth.

    Args:
        root: The directory.
        but: Files that may change, as paths relative to it.
    """
    files = (path for path in root.rglob("*") if path.is_file())
    names = (path.relative_to(root).as_posix() for path in files)
    write_checksums(root / CHECKSUMS, sorted(set(names) - {CHECKSUMS, *but}))


def find_change(path: str | os.PathLike[str]) -> str | None:
    """Returns what has changed since checksums were written, or `None`.

    Args:
        path: The JSON file of checksums.

    Returns:
        The first change, such as `"step-10.index is missing"`.
    """
    folder, own_name = os.path.split(os.fspath(path))
    try:
        sums = _read(path)
    except ValueError:
        return f"{own_name} has no checksums"
    for name, expected in sums.items():
        if change := _change_of(os.path.join(folder, name), expected):
            return f"{name} {change}"
    return None


def compare_with_checksums(
    path: pathlib.Path,
) -> tuple[pathlib.Path, str | None]:
    """Compares a file or a directory with its checksums, if there are any.

    The checksums of a directory are in it, or, like those of a file, in a
    directory above.

    Returns:
        The file of the checksums, and the first change, or `None`.
    """
    if (path / CHECKSUMS).exists():
        return path / CHECKSUMS, find_change(path / CHECKSUMS)
    for folder in path.parents[:_DEPTH]:
        checksums = folder / CHECKSUMS
        name = path.relative_to(folder).as_posix()
        if not checksums.exists():
            continue
        try:
            sums = _read(checksums)
        except ValueError:
            return checksums, f"{CHECKSUMS} has no checksums"
        for each, expected in sums.items():
            if each != name and not each.startswith(f"{name}/"):
                continue
            if change := _change_of(str(folder / each), expected):
                return checksums, f"{each} {change}"
    return path, None


def _change_of(path: str, expected: Sum) -> str | None:
    try:
        size = tf.io.gfile.stat(path).length
        if size != expected["bytes"]:
            return f"has {size:,} bytes instead of {expected['bytes']:,}"
        return None if _sum_of(path) == expected else "was changed"
    except tf.errors.NotFoundError:
        return "is missing"
    except tf.errors.OpError as error:
        return f"cannot be read ({error.message})"


def _sum_of(path: str) -> Sum:
    digest, size = hashlib.sha256(), 0
    with tf.io.gfile.GFile(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _write(path: str | os.PathLike[str], sums: Mapping[str, Sum]) -> None:
    write_whole_anywhere(os.fspath(path), json.dumps(sums, indent=2) + "\n")


def _read(path: str | os.PathLike[str]) -> dict[str, Sum]:
    """The checksums in a file. Raises `ValueError` if it has none."""
    try:
        with tf.io.gfile.GFile(os.fspath(path)) as file:
            sums = json.loads(file.read())
        return {
            name: {"bytes": int(each["bytes"]), "sha256": str(each["sha256"])}
            for name, each in sums.items()
        }
    except (
        AttributeError,
        KeyError,
        RecursionError,
        TypeError,
        tf.errors.OpError,
    ) as error:
        raise ValueError(str(error)) from error
