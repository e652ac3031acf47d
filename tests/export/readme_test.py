"""The examples of loading run, each in a process of its own."""

import os
import subprocess
import sys

import pytest

from export.saved_model import main
from tests.docs.pages import blocks


@pytest.fixture(scope="module")
def folder(exports, presets, tmp_path_factory):
    root = tmp_path_factory.mktemp("examples")
    args = f"--model {presets / 'classifier'} --what classifier"
    assert main([*args.split(), "--out", str(root / "served")]) == 0
    os.symlink(exports / "encoder", root / "encoder")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/guides/serving.md"])
def test_the_example_runs(page, folder):
    """Of all other blocks `tests/docs/code_test.py` runs the Python."""
    python = [block.text for block in blocks(page, "python")]
    (example,) = (text for text in python if '"served"' in text)
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", example],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
