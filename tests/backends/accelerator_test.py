"""The benchmark for accelerators at toy size, on the backend's own device."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import pytest

BACKEND = keras.backend.backend()
SCRIPT = pathlib.Path(__file__).parents[2] / "benchmarks" / "accelerator.py"
MEMORY = {"num-sub-keys": 8, "width": 16, "top-k": 4, "key-dim": 8}
BASE = {
    "num-layers": 1,
    "hidden-dim": 8,
    "num-heads": 2,
    "intermediate-dim": 8,
    "memory-layers": 1,
    "num-sub-keys": 8,
    "top-k": 4,
    "key-dim": 8,
    "vocabulary-size": 20,
}
MISSING = [
    package
    for package in ("tabulate", "tqdm", "tyro")
    if importlib.util.find_spec(package) is None
]


# It is for GPUs, on which the other backends train.
@pytest.mark.skipif(BACKEND == "tensorflow", reason="run on JAX and torch")
@pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing")
def test_its_tables(tmp_path):
    arguments = [
        *(f"--memory.{name}={value}" for name, value in MEMORY.items()),
        *(f"--base.{name}={value}" for name, value in BASE.items()),
        *("--tokens", "4", "9", "--batches", "2", "--length", "8"),
        *("--matrix", "16", "--rounds", "2", "--steps", "2"),
    ]
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments, "--out", tmp_path],
        env={**os.environ, "KERAS_BACKEND": BACKEND},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = {}
    for name in ("device", "memory", "bert"):
        path = tmp_path / f"accelerator-{BACKEND}-{name}"
        assert path.with_suffix(".md").read_text() in done.stdout
        rows[name] = json.loads(path.with_suffix(".json").read_text())["rows"]
    assert [row["tokens"] for row in rows["memory"]] == [4, 9]
    tasks = [row["task"] for row in rows["bert"]]
    assert tasks == ["inference", "train step"]
    assert all(float(row["BASE+ResM ms"]) > 0 for row in rows["bert"])
