"""Runs the jobs of a comparison without a process for each."""

from training import finetune
from training import pretrain
from training import study_job

_COMMANDS = {
    "pretrain.py": pretrain.main,
    "finetune.py": finetune.main,
    "study_job.py": study_job.main,
}


def run_here(jobs, logs, at_once):
    """As `run_jobs`, in this process: each of its own imports TensorFlow."""
    run_here.done = []
    for job in jobs:
        assert all(path.exists() for path in job.needs)
        if not job.is_done:
            assert _COMMANDS[job.script](list(job.args)) == 0
            assert job.is_done
            run_here.done.append(job.name)
