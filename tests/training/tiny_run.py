"""A pretraining run that takes seconds, for tests of what it leaves."""

import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]

TINY = (
    "--vocabulary-size 300 --sequence-length 16 --num-layers 2 "
    "--hidden-dim 16 --num-heads 2 --intermediate-dim 16 --memory-layers 2 "
    "--num-sub-keys 8 --memory-top-k 4 --memory-key-dim 8 --batch-size 8 "
    "--plain-steps 4 --steps 4 --held-out 0.2"
).split()


def run(*args):
    """Runs the command as users do, in a process of its own."""
    return subprocess.run(
        [sys.executable, str(ROOT / "training" / "pretrain.py"), *args],
        capture_output=True,
        text=True,
        timeout=600,
    )


def write_corpus(path):
    """Writes 60 short documents of few words, and returns the path."""
    rng = np.random.default_rng(0)
    words = [f"{a}{b}" for a in "bcdfgh" for b in ("at", "en", "ing", "ould")]
    documents = [
        "\n".join(" ".join(rng.choice(words, 12)) + "." for _ in range(6))
        for _ in range(60)
    ]
    path.write_text("\n\n".join(documents))
    return str(path)
