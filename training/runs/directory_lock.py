"""A lock on a directory, so that no two processes write into it."""

import contextlib
import errno
import fcntl
import json
import logging
import os
import pathlib
import platform
import shlex
import sys
import time
from collections.abc import Iterator
from typing import TextIO

from training.runs.user_error import UserError

LOCK = "run.lock"

_log = logging.getLogger(__name__)
# The error codes of file systems that do not support locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextlib.contextmanager
def locked_directory(
    root: pathlib.Path, flag: str, inherited: bool = False
) -> Iterator[None]:
    """Locks a directory within this context; creates it if it is missing.

    The operating system releases the lock when the process ends, however it
    ends. Locks work on local file systems and, since Linux 2.6.12, over NFS. If
    the file system does not support locks, a warning is logged instead. If the
    directory was created here and nothing was written into it, it is removed
    again.
    """
    created = [path for path in (root, *root.parents) if not path.exists()]
    try:
        root.mkdir(parents=True, exist_ok=True)
        file = _lock(root / LOCK)
    except BlockingIOError as error:
        raise UserError(
            f"{flag} must be a directory into which no other process writes, "
            f"but '{root}' is in use by {_holder(root / LOCK)}"
            f"{', or a command that it started' if inherited else ''}: wait "
            "for it to end, or stop it"
        ) from error
    except OSError as error:
        _remove_empty(created)
        raise UserError(
            f"{flag} must be a directory that can be written, received "
            f"'{root}' ({error.strerror}): pass another one"
        ) from error
    try:
        os.set_inheritable(file.fileno(), inherited)
        yield
    finally:
        # The file is removed before the lock is released: see `_lock`.
        (root / LOCK).unlink(missing_ok=True)
        file.close()
        _remove_empty(created)


def _lock(path: pathlib.Path) -> TextIO:
    """Opens and locks a file, and writes the lock's holder into it."""
    while True:
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                file.close()
                raise
            _log.warning(
                "The file system of '%s' has no locks (%s): make sure that "
                "no other process writes there",
                path.parent,
                error.strerror,
            )
        # The previous holder may have removed the file in between.
        if _is_open_at(file, path):
            break
        file.close()
    file.truncate(0)
    holder = {
        "process": os.getpid(),
        "machine": platform.node(),
        "command": shlex.join(sys.argv),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    file.write(json.dumps(holder) + "\n")
    file.flush()
    return file


def _is_open_at(file: TextIO, path: pathlib.Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _holder(path: pathlib.Path) -> str:
    """Describes the process that holds a lock, as far as known."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return (
            f"process {holder['process']} on {holder['machine']} since "
            f"{holder['since']} ({holder['command']})"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _remove_empty(directories: list[pathlib.Path]) -> None:
    """Removes directories, the innermost one first, up to one with files."""
    for path in directories:
        try:
            path.rmdir()
        except OSError:
            return
