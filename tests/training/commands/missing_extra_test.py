"""A package that is missing, and the extra that has it."""

import subprocess
import sys

import pytest

from tests.training.tiny_run import ROOT
from training.commands import missing_extra


def run_without(package, script):
    """Runs a script's --help where a package is not installed."""
    code = (
        "import runpy, sys\n"
        f"sys.modules[{package!r}] = None\n"
        f"sys.argv = [{script!r}, '--help']\n"
        "sys.path.insert(0, '')\n"
        f"runpy.run_path({script!r}, run_name='__main__')\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )


@pytest.mark.slow
def test_teaching_needs_no_plots():
    done = run_without("matplotlib", "training/teach.py")
    assert done.returncode == 0 and "--facts" in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "package", "extras"),
    [
        ("training/recall.py", "matplotlib", "training,plots"),
        ("export/patch.py", "tyro", "export"),
    ],
)
def test_a_script_names_the_extra(script, package, extras):
    done = run_without(package, script)
    name = script.split("/")[1]
    # Packages that are there may have warned of others before.
    assert done.stderr.splitlines(keepends=True)[-1] == (
        f"error: {name} needs the package {package}, which is not installed: "
        f'pip install -e ".[{extras}]"\n'
    )
    assert done.returncode == 1


def test_other_errors_keep_their_traceback(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["training/recall.py"])
    try:
        raise ValueError("some reason")
    except ValueError as error:
        missing_extra.explain(type(error), error, error.__traceback__)
    assert "Traceback" in capsys.readouterr().err
