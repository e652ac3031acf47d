"""Runs the commands that are not yet done, several in parallel."""

import dataclasses
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from tqdm import tqdm

from training.runs.files import read_json
from training.runs.files import write_json
from training.runs.user_error import RunError

_ROOT = pathlib.Path(__file__).parents[2]
_LAST_LINES = 15
_TIMES = "seconds.json"
_SECONDS = 0.2  # between two checks of the running jobs


@dataclasses.dataclass(frozen=True)
class Job:
    """A command."""

    # A description for users.
    title: str
    # The name of its log.
    name: str
    # The file in `training/`.
    script: str
    # Its arguments.
    args: tuple[str, ...]
    # The file that exists once it has ended.
    result: pathlib.Path
    # The files that it needs.
    needs: tuple[pathlib.Path, ...] = ()
    # Its approximate duration, in train steps.
    cost: float = 1.0
    # Whether nothing else may run meanwhile, because it measures time.
    alone: bool = False
    # The function that `study_job.py` calls, and whose findings it writes.
    find: Callable[[], dict] = dict

    @property
    def is_done(self) -> bool:
        """Whether its result exists."""
        return self.result.exists()


def run_jobs(jobs: list[Job], logs: pathlib.Path, at_once: int) -> None:
    """Runs commands, each in a separate process, and shows the time left.

    `seconds.json` beside the logs' directory has the time of each job.
    """
    logs.mkdir(parents=True, exist_ok=True)
    progress = tqdm(
        total=round(sum(job.cost for job in jobs)),
        initial=round(sum(job.cost for job in jobs if job.is_done)),
        bar_format="{percentage:3.0f}% |{bar:20}| {elapsed}, {remaining} left",
        disable=None,
    )
    running: dict[Job, subprocess.Popen] = {}
    began: dict[Job, float] = {}
    times = job_seconds(logs.parent)
    with progress:
        try:
            while not all(job.is_done for job in jobs) or running:
                for job in _ready(jobs, running, at_once):
                    number = jobs.index(job) + 1
                    tqdm.write(f"[{number}/{len(jobs)}] {job.title}")
                    shares = 1 if job.alone else at_once
                    began[job] = time.monotonic()
                    running[job] = _start(job, _log(logs, job), shares)
                if not running:
                    raise _stuck(jobs)
                time.sleep(_SECONDS)
                for job, process in list(running.items()):
                    if process.poll() is None:
                        continue
                    del running[job]
                    if process.returncode or not job.is_done:
                        raise _failure(job, process.returncode, _log(logs, job))
                    times[job.name] = round(time.monotonic() - began[job], 1)
                    write_json(logs.parent / _TIMES, times)
                    progress.update(round(job.cost))
        finally:
            # After success, none is left.
            for process in running.values():
                process.send_signal(signal.SIGTERM)
            for process in running.values():
                process.wait()


def job_seconds(root: pathlib.Path) -> dict[str, float]:
    """Returns the seconds that each job took which was done in a directory."""
    return read_json(root / _TIMES, "--out", default={})


def _ready(
    jobs: list[Job], running: dict[Job, subprocess.Popen], at_once: int
) -> list[Job]:
    """The jobs that can start now."""
    ready = [
        job
        for job in jobs
        if not job.is_done
        and job not in running
        and all(path.exists() for path in job.needs)
    ]
    if any(job.alone for job in [*running, *ready[:1]]):
        return [] if running else ready[:1]
    others = [job for job in ready if not job.alone]
    return others[: at_once - len(running)]


def _start(job: Job, log: pathlib.Path, shares: int) -> subprocess.Popen:
    command = [sys.executable, str(_ROOT / "training" / job.script), *job.args]
    environment = dict(os.environ)
    if shares > 1:
        threads = max(1, (os.cpu_count() or 1) // shares)
        environment["TF_NUM_INTRAOP_THREADS"] = str(threads)
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"$ {shlex.join(command)}\n")
        file.flush()
        return subprocess.Popen(
            command,
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
            # Otherwise jobs would get a terminal's signals twice.
            start_new_session=True,
            # Jobs inherit the lock on the directory.
            close_fds=False,
        )


def _log(logs: pathlib.Path, job: Job) -> pathlib.Path:
    return logs / f"{job.name}.log"


def _stuck(jobs: list[Job]) -> RunError:
    """The error if no job that is left can start."""
    job = next(job for job in jobs if not job.is_done)
    path = next(path for path in job.needs if not path.exists())
    return RunError(
        f"{job.title} needs '{path}', which is missing, and no job that is "
        "left writes it: restore it, or begin again with another --out"
    )


def _failure(job: Job, code: int, log: pathlib.Path) -> RunError:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    last = "\n".join(lines[-_LAST_LINES:])
    return RunError(
        f"{job.title} ended with exit code {code}. {log} ends:\n{last}"
    )
