"""A run that is killed, stopped and runs out of disk, and goes on exactly."""

import resource
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.soak.kill_and_resume import ROOT
from tests.soak.kill_and_resume import SHORT_RUN
from tests.soak.kill_and_resume import figures_of
from tests.soak.kill_and_resume import finish
from tests.soak.kill_and_resume import kill_when
from tests.soak.kill_and_resume import md5_of_variables
from tests.soak.kill_and_resume import start
from tests.soak.kill_and_resume import write_corpus
from training.pretrain import main
from training.pretraining.logs import read_rows

# Between the sizes of the plain model's checkpoints and of those with a table.
FULL_DISK = 4 * 2**20


@pytest.mark.slow
def test_a_disturbed_run_ends_as_an_undisturbed_one(tmp_path):
    """All happens to one run: each part goes on from the one before."""
    corpus = tmp_path / "corpus.txt"
    write_corpus(corpus)
    args = ["--text", str(corpus), "--held-out", "0.2", *SHORT_RUN]
    # Several replicas go on in tests/callbacks/training_checkpoint_test.py,
    # tests/training/multi_worker_test.py and the soak.
    args += ["--precision", "mixed_float16"]
    whole, run_dir = tmp_path / "whole", tmp_path / "run"
    finish(whole, *args)

    def exists(pattern):
        return lambda: any(run_dir.glob(pattern))

    plain, resm = "checkpoints/plain/step-", "checkpoints/resm/step-"
    again = stop_when(exists(f"{plain}4.index"), signal.SIGINT, run_dir, args)
    # Between the stages: the first one's checkpoints still fit.
    fill_the_disk(run_dir, args)
    assert exists(f"{plain}12.index")() and not exists(f"{resm}*.index")()
    # While a checkpoint is written.
    assert kill_when(exists(f"{resm}*_temp"), run_dir, *args)
    # While presets are written.
    assert kill_when(exists(".last.*.partial"), run_dir, *args)
    assert not (run_dir / "results.json").exists()
    # What is packed is all that training reads.
    corpus.unlink()
    # What it said is what continues it.
    assert "+Init resm, resumes after" in run(again)

    assert md5_of_variables(run_dir) == md5_of_variables(whole)
    assert figures_of(run_dir) == figures_of(whole)
    for name, key in (
        ("plain.csv", ["epoch"]),
        ("resm.csv", ["epoch"]),
        ("resm-memory.csv", ["step", "layer"]),
    ):
        expected, actual = (
            rows_of(directory / "logs" / name, key)
            for directory in (whole, run_dir)
        )
        assert actual == expected, name
    assert not exists("**/*.partial")() and not exists("**/*_temp")()

    steps = read_rows(whole / "logs" / "resm-perplexity.csv", "step")
    perplexities = np.array([float(row["perplexity"]) for row in steps])
    means = np.exp(np.log(perplexities).reshape(-1, 6).mean(1))
    epochs = read_rows(whole / "logs" / "resm.csv", "epoch")
    np.testing.assert_allclose(
        means, [float(row["perplexity"]) for row in epochs], rtol=1e-4
    )


def stop_when(moment, number, run_dir, args):
    """Stops the run with a signal and returns the command that it names."""
    process = start(run_dir, *args)
    end = time.monotonic() + 300
    while not moment():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(number)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 128 + number, output
    assert "Traceback" not in output
    assert f"Stopped by {number.name}." in output
    (line,) = (
        line
        for line in output.splitlines()
        if "To resume from the last checkpoint: " in line
    )
    return line.split("checkpoint: ")[-1]


def fill_the_disk(run_dir, args):
    """Runs it on a full disk, for which a limit to files' sizes stands."""
    process = start(
        run_dir,
        *args,
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (FULL_DISK, resource.RLIM_INFINITY)
        ),
    )
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 1, output
    assert "Traceback" not in output
    (line,) = (li for li in output.splitlines() if li.startswith("error: "))
    assert "could not be written" in line and str(run_dir) in line
    assert "To resume from the last checkpoint: python" in line


def run(command):
    """Runs a command line as users do, and returns what it printed."""
    done = subprocess.run(
        [sys.executable, *shlex.split(command)[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def rows_of(path, key):
    """A log, as it is read, without what an interruption may change.

    The training loss of an interrupted epoch is that of its rest.
    """
    return [
        {
            name: value
            for name, value in row.items()
            if name not in ("loss", "perplexity")
        }
        for row in read_rows(path, *key)
    ]


@pytest.mark.slow
def test_bad_batches(tmp_path, capsys, monkeypatch):
    """Steps 5 to 8 of the stage have a loss that is not finite."""
    from training.batches.objectives import Objective

    batches = Objective.training_batches

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

    monkeypatch.setattr(Objective, "training_batches", poisoned)
    corpus = tmp_path / "corpus.txt"
    write_corpus(corpus)
    run_dir = tmp_path / "run"
    code = main(
        ["--text", str(corpus), "--held-out", "0.2", *SHORT_RUN]
        + ["--num-sub-keys", "8", "--plain-steps", "0", "--out"]
        + [str(run_dir), "--precision", "float32"]
    )
    error = capsys.readouterr().err
    assert code == 1
    assert "not finite at the 3 steps 5 to 7, counted from 1" in error
    assert f"'{run_dir}/checkpoints/resm/step-4'" in error
    held = sorted(p.name for p in run_dir.glob("checkpoints/resm/*.index"))
    assert held == ["step-2.index", "step-4.index"]
