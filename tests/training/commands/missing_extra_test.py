"""A package that is missing, and the extra that has it."""

import subprocess
import sys

import pytest

from tests.training.tiny_run import ROOT
from training.commands import missing_extra

# In one process, which imports TensorFlow once.
RUN = """
import runpy
import sys

def run(script):
    # What an earlier script has done about errors.
    for name in ("missing_extra", "quiet"):
        sys.modules.pop(f"training.commands.{name}", None)
    sys.excepthook = sys.__excepthook__
    sys.argv = [script, "--help"]
    runpy.run_path(script, run_name="__main__")

sys.path.insert(0, "")
# Importing them is an error.
sys.modules["matplotlib"] = sys.modules["tyro"] = None
try:
    run("export/patch.py")
except ModuleNotFoundError:
    sys.excepthook(*sys.exc_info())
del sys.modules["tyro"]
try:
    run("training/teach.py")
except SystemExit as end:
    assert not end.code
    print("teach.py has ended well")
run("training/recall.py")
"""


@pytest.mark.slow
def test_a_script_names_the_extra_that_it_needs():
    """Teaching needs no plots."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "--facts" in done.stdout, done.stderr
    assert done.stdout.endswith("teach.py has ended well\n")
    # Packages that are there may have warned of others.
    lines = done.stderr.splitlines()
    first, last = (
        f"error: {script} needs the package {package}, which is not installed: "
        f'pip install -e ".[{extras}]"'
        for script, package, extras in (
            ("patch.py", "tyro", "export"),
            ("recall.py", "matplotlib", "training,plots"),
        )
    )
    assert first in lines[:-1] and lines[-1] == last


def test_other_errors_keep_their_traceback(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["training/recall.py"])
    try:
        raise ValueError("some reason")
    except ValueError as error:
        missing_extra.explain(type(error), error, error.__traceback__)
    assert "Traceback" in capsys.readouterr().err
