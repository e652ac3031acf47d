"""What takes long to build is built once for all tests, in all processes."""

import fcntl
import os
import shutil


def built_once(tmp_path_factory, name, build):
    """Returns a directory, which the first process that asks for it fills.

    Args:
        tmp_path_factory: pytest's.
        name: Of the directory.
        build: Function that fills it.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Each process of pytest-xdist has a folder of its own in this one.
        base = base.parent
    directory, done = base / name, base / f"{name}.done"
    with open(base / f"{name}.lock", "w") as lock:
        # Another process that builds it now is waited for.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            build(directory)
            done.touch()
    return directory
