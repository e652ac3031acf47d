"""The examples of loading run, each in a process of its own."""

import os
import subprocess
import sys

import pytest

from export.saved_model import main
from tests.docs.pages import blocks


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/guides/serving.md"])
def test_the_example_runs(page, exports, presets, tmp_path):
    """Of all other blocks `tests/docs/code_test.py` runs the Python."""
    args = f"--model {presets / 'classifier'} --what classifier"
    assert main([*args.split(), "--out", str(tmp_path / "served")]) == 0
    os.symlink(exports / "encoder", tmp_path / "encoder")
    python = [block.text for block in blocks(page, "python")]
    (example,) = (text for text in python if '"served"' in text)
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
