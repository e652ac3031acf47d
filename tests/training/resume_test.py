"""Runs that are killed, stopped or run out of disk, and go on exactly."""

import csv
import dataclasses
import json
import pathlib
import resource
import shlex
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.kill_and_resume import ROOT
from benchmarks.kill_and_resume import SHORT_RUN
from benchmarks.kill_and_resume import figures_of
from benchmarks.kill_and_resume import finish
from benchmarks.kill_and_resume import kill_when
from benchmarks.kill_and_resume import md5_of_variables
from benchmarks.kill_and_resume import start
from benchmarks.kill_and_resume import write_corpus
from training.pretrain import main


@dataclasses.dataclass
class Whole:
    """A run that nothing disturbed."""

    run_dir: object
    args: list

    def is_equalled_by(self, run_dir):
        assert md5_of_variables(run_dir) == md5_of_variables(self.run_dir)
        assert figures_of(run_dir) == figures_of(self.run_dir)
        for name in ("plain.csv", "resm.csv", "resm-memory.csv"):
            expected, actual = (
                rows_of(directory / "logs" / name)
                for directory in (self.run_dir, run_dir)
            )
            assert actual == expected, name
        assert not list(run_dir.rglob("*.partial"))
        assert not list(run_dir.rglob("*_temp"))


def rows_of(path):
    """A CSV file without what an interruption may change.

    The training loss of an interrupted epoch is that of its rest.
    """
    with open(path) as file:
        return [
            {
                name: value
                for name, value in row.items()
                if name not in ("loss", "perplexity")
            }
            for row in csv.DictReader(file)
        ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    root = tmp_path_factory.mktemp("whole")
    corpus = root / "corpus.txt"
    write_corpus(corpus)
    args = ["--corpus", str(corpus), "--held-out", "0.2", *SHORT_RUN]
    args += ["--strategy", "mirrored"]
    finish(root / "run", *args)
    return Whole(root / "run", args)


def test_kills_leave_no_trace(whole, tmp_path):
    """One run, killed where it hurts: each part goes on from the one before."""
    run_dir = tmp_path / "run"
    checkpoints = run_dir / "checkpoints"
    for moment in (
        # between the stages
        lambda: (checkpoints / "plain" / "step-12.index").exists(),
        # while a checkpoint is written
        lambda: any(checkpoints.glob("resm/step-*_temp")),
        # while presets are written
        lambda: (run_dir / "last.partial").exists(),
    ):
        assert kill_when(moment, run_dir, *whole.args)
        assert not (run_dir / "results.json").exists()
    # What is packed is all that training reads.
    corpus = pathlib.Path(whole.args[1])
    text = corpus.read_bytes()
    corpus.unlink()
    try:
        output = finish(run_dir, *whole.args)
    finally:
        corpus.write_bytes(text)
    assert "+Init resm, goes on after" in output
    whole.is_equalled_by(run_dir)


@pytest.mark.parametrize(
    "number, exit_code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_a_signal_ends_the_run_after_its_step(
    whole, tmp_path, number, exit_code
):
    run_dir = tmp_path / "run"
    process = start(run_dir, *whole.args)
    checkpoints = run_dir / "checkpoints"
    wait_until(lambda: any(checkpoints.glob("*/step-4.index")), process)
    process.send_signal(number)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == exit_code, output
    assert "Traceback" not in output
    assert f"Stopped by {number.name}." in output
    if number == signal.SIGINT:
        return
    # What it says is what continues it.
    (command,) = (
        line.split(": ", 1)[1]
        for line in output.splitlines()
        if "To go on from the last checkpoint: " in line
    )
    command = shlex.split(command.split("checkpoint: ")[-1])
    result = subprocess.run(
        [sys.executable, *command[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    whole.is_equalled_by(run_dir)


def wait_until(moment, process, seconds=300):
    end = time.monotonic() + seconds
    while not moment():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_full_disk_leaves_the_last_checkpoint(whole, tmp_path):
    """A limit to the size of files stands for a disk that is full.

    The plain model's checkpoint fits, the table's does not.
    """
    run_dir = tmp_path / "run"
    limit = 4 * 2**20
    process = start(
        run_dir,
        *whole.args,
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)
        ),
    )
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 1, output
    assert "Traceback" not in output
    (line,) = (li for li in output.splitlines() if li.startswith("error: "))
    assert "could not be written" in line and str(run_dir) in line
    assert "To go on from the last checkpoint: python" in line
    assert (run_dir / "checkpoints" / "plain" / "step-12.index").exists()
    finish(run_dir, *whole.args)
    whole.is_equalled_by(run_dir)


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_bad_batches(precision, tmp_path, capsys, monkeypatch):
    """Steps 5 to 8 of the stage have a loss that is not finite."""
    import training.pretraining_data as pretraining_data

    batches = pretraining_data.training_batches

    def poisoned(*args, first_step, num_steps, **kwargs):
        import tensorflow as tf

        good = batches(
            *args, first_step=first_step, num_steps=num_steps, **kwargs
        )

        def poison(step, batch):
            features, labels, weights = batch
            bad = (step >= 4) & (step < 8)
            return features, labels, tf.where(bad, float("nan"), weights)

        return good.enumerate(first_step).map(poison)

    monkeypatch.setattr(pretraining_data, "training_batches", poisoned)
    corpus = tmp_path / "corpus.txt"
    write_corpus(corpus)
    run_dir = tmp_path / "run"
    code = main(
        ["--corpus", str(corpus), "--held-out", "0.2", *SHORT_RUN]
        + ["--num-sub-keys", "8", "--plain-steps", "0", "--run-dir"]
        + [str(run_dir), "--precision", precision]
    )
    error = capsys.readouterr().err
    if precision == "mixed_float16":
        assert code == 0, error
        (stage,) = json.loads((run_dir / "results.json").read_text())["stages"]
        assert stage["skipped_steps"] == 4
        return
    assert code == 1
    assert "not finite at the 3 steps 5 to 7, counted from 1" in error
    assert f"'{run_dir}/checkpoints/resm/step-4'" in error
    held = sorted(p.name for p in run_dir.glob("checkpoints/resm/*.index"))
    assert held == ["step-2.index", "step-4.index"]
