"""Damaged files, at random: no traceback, and no other result unsaid."""

import pathlib
import subprocess
import sys

import pytest

FUZZ = pathlib.Path(__file__).parents[1] / "soak" / "fuzz_files.py"


@pytest.mark.slow
def test_damages():
    """In a process of its own, as eager functions are a global setting."""
    cases = "--cases 20 --seed 1 --eagerly".split()
    done = subprocess.run(
        [sys.executable, str(FUZZ), *cases],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout[-3000:])
    assert done.returncode == 0
    assert "0 of 20 bad" in done.stdout
