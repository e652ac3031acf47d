"""Two workers, each a process, on this machine."""

import json
import os
import signal
import socket
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.markdown import squeezed
from tests.soak.kill_and_resume import figures_of
from tests.soak.kill_and_resume import start
from tests.soak.kill_and_resume import write_corpus
from training import pretrain
from training.commands.strategy import check_tf_config
from training.commands.strategy import create_strategy
from training.runs.user_error import UserError

ARGS = (
    "--vocabulary-size 400 --sequence-length 16 --num-layers 1 "
    "--hidden-dim 16 --num-heads 2 --intermediate-dim 16 --memory-layers 1 "
    "--num-sub-keys 8 --memory-top-k 4 --memory-key-dim 8 --batch-size 8 "
    "--plain-steps 0 --steps 10 --evaluate-every 5 --checkpoint-every 2 "
    "--held-out 0.2 --precision float32"
).split()
# A worker that has gone is noticed within this time.
BOUND_SECONDS = 120


def start_workers(run_dir, *args):
    """Starts the command twice, as two workers that know of each other."""
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("localhost", 0))
    addresses = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    processes = []
    for index in range(2):
        config = {
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": index},
        }
        processes.append(
            start(
                run_dir,
                "--strategy",
                "multi_worker",
                *args,
                env={**os.environ, "TF_CONFIG": json.dumps(config)},
            )
        )
    return processes


def finish_workers(run_dir, *args):
    outputs = []
    for process in start_workers(run_dir, *args):
        outputs.append(process.communicate(timeout=600)[0])
        assert process.returncode == 0, outputs[-1]
    return outputs


@pytest.mark.slow
def test_two_workers_train_as_one_device(tmp_path):
    """One of them is killed on the way, which ends the other; all go on."""
    corpus = tmp_path / "corpus.txt"
    write_corpus(corpus)
    args = ["--text", str(corpus), *ARGS]
    run_dir = tmp_path / "two"
    kill_a_worker(run_dir, args)
    outputs = finish_workers(run_dir, *args)
    assert pretrain.main([*args, "--out", str(tmp_path / "one")]) == 0
    expected, actual = (
        tf.train.load_checkpoint(str(directory / "checkpoints" / "resm"))
        for directory in (tmp_path / "one", run_dir)
    )
    names = [
        name
        for name in expected.get_variable_to_shape_map()
        if name.startswith("model/")
    ]
    assert len(names) > 30
    for name in names:
        np.testing.assert_allclose(
            actual.get_tensor(name),
            expected.get_tensor(name),
            atol=1e-5,
            err_msg=name,
        )
    # Held-out figures are those of all workers together.
    (stage,), (other,) = figures_of(run_dir), figures_of(tmp_path / "one")
    assert stage["perplexity"] == pytest.approx(other["perplexity"], rel=1e-5)
    assert stage["memory_usage"]["1"]["top1_reads"] > 0
    assert "resumes after" in outputs[0]
    for output in outputs:
        row = f"| resm | 10 | {stage['perplexity']:.2f} |"
        assert row in squeezed(output)
    # Only the chief shows progress.
    assert "Epoch 2/2" in outputs[0] and "Epoch 2/2" not in outputs[1]


def kill_a_worker(run_dir, args):
    chief, worker = start_workers(run_dir, *args)
    checkpoint = run_dir / "checkpoints" / "resm" / "step-4.index"
    try:
        while not checkpoint.exists():
            assert chief.poll() is None, chief.communicate()[0]
            time.sleep(0.01)
        worker.send_signal(signal.SIGKILL)
        output, _ = chief.communicate(timeout=BOUND_SECONDS)
    finally:
        chief.kill()
        worker.kill()
        worker.communicate()
    assert chief.returncode == 1, output
    assert "error: another worker does not answer any more" in output
    assert "start all of them again" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        '{"cluster": {}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {}}',
        '{"cluster": {"worker": ["a:1"]}, '
        '"task": {"type": "worker", "index": 1}}',
    ],
)
def test_unusable_tf_config(text):
    with pytest.raises(UserError, match="TF_CONFIG must list all workers"):
        check_tf_config(text)


def test_usable_tf_config():
    check_tf_config(
        '{"cluster": {"worker": ["a:1", "b:1"]}, '
        '"task": {"type": "worker", "index": 1}}'
    )


def test_devices_of_a_worker_cannot_be_chosen():
    with pytest.raises(UserError, match="--devices must be left out"):
        create_strategy("multi_worker", 2)
