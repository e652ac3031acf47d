"""Kills a pretraining run at random moments and checks how it goes on.

    python tests/soak/kill_and_resume.py --kills 20 --strategy mirrored

A short run with dropout, two stages, memory, warm-up and mixed precision is
killed with SIGKILL, started again, and run to its end, once for each kill. The
MD5 of all variables of model and optimizer must be that of a run that nothing
disturbed.
"""

import hashlib
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Literal

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[2])

import tensorflow as tf
import tyro

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The table is large for such a model: checkpoints take a while to be written.
SHORT_RUN = (
    "--vocabulary-size 400 --sequence-length 16 --num-layers 1 "
    "--hidden-dim 32 --num-heads 2 --intermediate-dim 32 --dropout 0.1 "
    "--memory-layers 1 --num-sub-keys 256 --memory-top-k 4 --memory-key-dim 8 "
    "--query-dropout 0.1 --value-dropout 0.1 --batch-size 8 --plain-steps 12 "
    "--steps 12 --evaluate-every 6 --checkpoint-every 2"
).split()

WORDS = [f"{a}{b}" for a in "bcdfgh" for b in ("at", "en", "ing", "ould")]


def write_corpus(path: pathlib.Path):
    """Writes sixty documents of random words."""
    rng = random.Random(0)
    documents = (
        "\n".join(f"{' '.join(rng.choices(WORDS, k=12))}." for _ in range(6))
        for _ in range(60)
    )
    path.write_text("\n\n".join(documents))


def start(run_dir: pathlib.Path, *args: str, **options) -> subprocess.Popen:
    """Starts the command in a process of its own, as `Popen(**options)`."""
    return subprocess.Popen(
        [
            sys.executable,
            str(ROOT / "training" / "pretrain.py"),
            "--out",
            str(run_dir),
            *args,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


def finish(run_dir: pathlib.Path, *args: str) -> str:
    """Runs the command to its end and returns what it printed.

    Raises:
        RuntimeError: it failed.
    """
    process = start(run_dir, *args)
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}:\n{output}")
    return output


def kill_when(
    moment: Callable[[], bool], run_dir: pathlib.Path, *args: str
) -> bool:
    """Starts the command and kills it at a moment.

    Returns:
        Whether the moment came before the end.
    """
    process = start(run_dir, *args)
    try:
        while process.poll() is None:
            if moment():
                process.send_signal(signal.SIGKILL)
                return True
            time.sleep(0.001)
        return False
    finally:
        process.communicate()


def md5_of_variables(run_dir: pathlib.Path) -> str:
    """Returns the MD5 of all variables in a run's last checkpoint."""
    (directory,) = (run_dir / "checkpoints").iterdir()
    reader = tf.train.load_checkpoint(str(directory))
    md5 = hashlib.md5()
    for name in sorted(reader.get_variable_to_shape_map()):
        if name.startswith(("model/", "optimizer/")):
            md5.update(name.encode())
            md5.update(reader.get_tensor(name).tobytes())
    return md5.hexdigest()


def figures_of(run_dir: pathlib.Path) -> list[dict]:
    """Returns the figures of a run's stages, but for their speed."""
    stages = json.loads((run_dir / "results.json").read_text())["stages"]
    for stage in stages:
        del stage["tokens_per_second"]
    return stages


def main(
    kills: int = 20,
    strategy: Literal["default", "mirrored"] = "default",
    precision: str = "mixed_bfloat16",
    deterministic: bool = False,
    seed: int = 0,
):
    """Kills a short run at random moments and compares how it ends.

    Args:
        kills: Number of kills, each of a run of its own.
        strategy: As of pretrain.py.
        precision: As of pretrain.py.
        deterministic: Whether to make all ops deterministic.
        seed: Of the moments.
    """
    rng = random.Random(seed)
    equal = 0
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        corpus = root / "corpus.txt"
        write_corpus(corpus)
        args = ["--text", str(corpus), "--held-out", "0.2", *SHORT_RUN]
        args += ["--strategy", strategy, "--precision", precision]
        args += ["--deterministic"] if deterministic else []
        begin = time.monotonic()
        finish(root / "whole", *args)
        seconds = time.monotonic() - begin
        expected = md5_of_variables(root / "whole")
        print(f"undisturbed: {expected}, {seconds:.0f} s")
        number = 0
        while number < kills:
            run_dir = root / "killed"
            moment = time.monotonic() + rng.uniform(0, 1) * seconds
            killed = kill_when(
                lambda: time.monotonic() > moment,  # noqa: B023
                run_dir,
                *args,
            )
            held = sorted(
                str(path.relative_to(run_dir))
                for path in run_dir.glob("checkpoints/*/*.index")
            )
            # A moment after all is written is no kill: it is drawn again.
            if not killed or (run_dir / "results.json").exists():
                shutil.rmtree(run_dir)
                continue
            finish(run_dir, *args)
            actual = md5_of_variables(run_dir)
            same = actual == expected and figures_of(run_dir) == figures_of(
                root / "whole"
            )
            equal += same
            number += 1
            print(
                f"{number:2}: {actual} {'equal' if same else 'DIFFERENT'}, "
                f"killed with {', '.join(held) or 'no checkpoint'}",
                flush=True,
            )
            shutil.rmtree(run_dir)
    print(f"{equal} of {kills} equal")
    return 0 if equal == kills else 1


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
