"""The README's example of loading runs, in a process of its own."""

import os
import pathlib
import re
import subprocess
import sys

from export.saved_model import main

README = pathlib.Path(__file__).parents[2] / "README.md"


def test_the_example_runs(exports, presets, tmp_path):
    """Of its other blocks `tests/readme_test.py` runs the Python."""
    args = f"--model {presets / 'classifier'} --what classifier"
    assert main([*args.split(), "--out", str(tmp_path / "served")]) == 0
    os.symlink(exports / "encoder", tmp_path / "encoder")
    block = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[1]
    assert "hub.KerasLayer" in block
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
