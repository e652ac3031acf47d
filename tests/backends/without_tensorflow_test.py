"""The package on JAX and torch where TensorFlow cannot be imported."""

import os
import pathlib
import subprocess
import sys

import keras
import pytest

BACKEND = keras.backend.backend()
ROOT = str(pathlib.Path(__file__).parents[2])
PROGRAM = pathlib.Path(__file__).with_name("without_tensorflow.py")


@pytest.mark.skipif(BACKEND == "tensorflow", reason="it is the backend")
def test_everything_but_what_is_tensorflow_s():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM],
        env={**os.environ, "PYTHONPATH": ROOT, "KERAS_BACKEND": BACKEND},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(f"{BACKEND}: 'a b h h h'")
