"""A pretraining run that takes seconds, for tests of what it leaves."""

import dataclasses
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from training.loading.pretrained_model import load_language_model
from training.runs.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]

TINY = (
    "--vocabulary-size 300 --sequence-length 16 --num-layers 2 "
    "--hidden-dim 16 --num-heads 2 --intermediate-dim 16 --memory-layers 2 "
    "--num-sub-keys 8 --memory-top-k 4 --memory-key-dim 8 --batch-size 8 "
    "--plain-steps 4 --steps 6 --evaluate-every 2 --held-out 0.2"
).split()
# One stage, for tests that train for themselves.
SHORT = [*TINY, *"--plain-steps 0 --steps 2 --evaluate-every 2".split()]


@dataclasses.dataclass(frozen=True)
class TinyRun:
    """A finished run of both stages, in mixed precision.

    Attributes:
        root: The directory of all of it.
        stdout: What the command printed.
        stderr: Its messages.
    """

    root: Path
    stdout: str
    stderr: str

    @property
    def path(self):
        return self.root / "run"

    @property
    def files(self):
        return RunDirectory(self.path)

    @property
    def corpus(self):
        return self.root / "corpus.txt"

    @property
    def glue(self):
        """A directory with a task, SST-2, in which a word decides."""
        return self.root / "glue"


def build_tiny_run(root):
    """Runs the command as users do, in a process of its own."""
    corpus = write_corpus(root / "corpus.txt")
    args = ["--precision", "mixed_bfloat16", "--text", corpus, *TINY]
    done = subprocess.run(
        [sys.executable, str(ROOT / "training" / "pretrain.py"), *args]
        + ["--out", str(root / "run")],
        # Its own code is found from any folder.
        cwd=root,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    printed = {"stdout": done.stdout, "stderr": done.stderr}
    (root / "printed.json").write_text(json.dumps(printed))
    write_glue(root / "glue")


def open_tiny_run(root):
    printed = json.loads((root / "printed.json").read_text())
    return TinyRun(root, **printed)


def md5_of_model(run):
    """Returns the MD5 of all weights of a run's last model."""
    digest = hashlib.md5()
    for weight in load_language_model(str(run))[0].weights:
        digest.update(np.ascontiguousarray(weight).tobytes())
    return digest.hexdigest()


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


def write_glue(path, counts=(64, 11)):
    """Writes a task of words of that corpus, one of which decides."""
    directory = path / "SST-2"
    directory.mkdir(parents=True)
    for split, count in zip(("train", "dev"), counts):
        rows = [
            f"{'bat' if i % 2 else 'cing den'} fould\t{i % 2}\n"
            for i in range(count)
        ]
        (directory / f"{split}.tsv").write_text(
            "sentence\tlabel\n" + "".join(rows)
        )
    return str(path)
