"""Runs the commands of a comparison without a process for each."""

from training import finetune
from training import pretrain

_COMMANDS = {"pretrain.py": pretrain.main, "finetune.py": finetune.main}


def run_here(jobs, logs, at_once):
    """As `run_jobs`, in this process: each of its own imports TensorFlow."""
    for job in jobs:
        assert all(path.exists() for path in job.needs)
        if not job.is_done:
            assert _COMMANDS[job.script](list(job.args)) == 0
            assert job.is_done
