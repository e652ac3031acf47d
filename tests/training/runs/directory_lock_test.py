"""Who may write into a directory, and what is left when nobody did."""

import errno
import fcntl
import logging
import pathlib
import signal
import subprocess
import sys

import pytest

from training.runs.directory_lock import LOCK
from training.runs.directory_lock import locked_directory
from training.runs.user_error import UserError

ROOT = pathlib.Path(__file__).parents[3]
# Says so once it has the lock, and keeps it until it is killed.
HOLDER = """
import pathlib, sys, time
from training.runs.directory_lock import locked_directory
with locked_directory(pathlib.Path(sys.argv[1]), "--out"):
    print("locked", flush=True)
    time.sleep(300)
"""


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path):
    root = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, root],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(
            UserError, match=rf"--out.*in use by process {holder.pid} on "
        ):
            with locked_directory(root, "--out"):
                raise AssertionError("never")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert (root / LOCK).exists()
    with locked_directory(root, "--out"):
        (root / "file").touch()
    assert [path.name for path in root.iterdir()] == ["file"]


def test_a_directory_without_files_is_removed_if_it_is_new(tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    for root in (old, old / "a" / "b"):
        with pytest.raises(KeyError):
            with locked_directory(root, "--out"):
                assert (root / LOCK).exists()
                raise KeyError
    assert [*tmp_path.rglob("*")] == [old]


def test_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="--out must be a directory that can"):
        with locked_directory(tmp_path / "file" / "run", "--out"):
            raise AssertionError("never")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_system_without_locks(tmp_path, monkeypatch, caplog):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with caplog.at_level(logging.WARNING):
        with locked_directory(tmp_path / "run", "--out"):
            pass
    assert "make sure that no other process writes" in caplog.text
