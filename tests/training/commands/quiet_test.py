"""What a command prints of TensorFlow's own messages."""

import os
import subprocess
import sys

import pytest

from tests.training.tiny_run import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("flags, level", [([], "3"), (["--verbose"], None)])
def test_verbose(flags, level):
    code = (
        "import os, sys, training.commands.quiet\n"
        "print(os.environ.get('TF_CPP_MIN_LOG_LEVEL'), sys.argv[1:])"
    )
    environment = dict(os.environ)
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    done = subprocess.run(
        [sys.executable, "-c", code, *flags, "--steps", "3"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"{level} ['--steps', '3']\n", done.stderr
    assert not done.stderr


def test_a_run_fits_on_a_screen(tiny_run):
    printed = tiny_run.stdout.splitlines() + tiny_run.stderr.splitlines()
    assert len(printed) <= 60
    assert not [line for line in printed if "0000 00:00:" in line]
    figures = [line for line in printed if "memory_" in line and "loss" in line]
    assert figures and max(line.count("memory_") for line in figures) == 2
