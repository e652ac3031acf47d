"""The runner, with jobs that take no time."""

import os
import signal
import threading
import time

import pytest

from training.commands.signals import Interrupted
from training.commands.signals import catch_signals
from training.runs.user_error import RunError
from training.studies.jobs import Job
from training.studies.jobs import job_seconds
from training.studies.jobs import run_jobs

# Says when it began, waits for a file, if one is named, and leaves its result.
SCRIPT = """
import os, pathlib, signal, sys, time
result, awaited, code = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def stop(number, frame):
    result.with_suffix(".stopped").touch()
    sys.exit(128 + number)

signal.signal(signal.SIGTERM, stop)
result.with_suffix(".began").touch()
print("threads", os.environ.get("TF_NUM_INTRAOP_THREADS"))
while awaited and not pathlib.Path(awaited).exists():
    time.sleep(0.01)
if code == 0:
    result.write_text("done")
print("the last line")
sys.exit(code)
"""


@pytest.fixture
def make_job(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)

    def make_job(name, needs=(), awaited="", code=0, alone=False):
        return Job(
            title=f"job {name}",
            name=name,
            # An absolute path stands for itself.
            script=str(script),
            args=(str(tmp_path / name), str(awaited), str(code)),
            result=tmp_path / name,
            needs=tuple(tmp_path / need for need in needs),
            cost=1.0,
            alone=alone,
        )

    return make_job


def test_what_no_job_writes(make_job, tmp_path):
    with pytest.raises(RunError, match=r"job a needs '.*gone'.* --out"):
        run_jobs([make_job("a", needs=["gone"])], tmp_path / "logs", 2)


def test_each_job_waits_for_what_it_needs(make_job, tmp_path, capsys):
    # The second one listed needs the third one.
    jobs = [make_job("a"), make_job("c", needs=["b"]), make_job("b", ["a"])]
    run_jobs(jobs, tmp_path / "logs", at_once=2)
    assert all(job.is_done for job in jobs)
    printed = capsys.readouterr().out
    order = [line.split()[-1] for line in printed.splitlines()]
    assert order == ["a", "b", "c"]
    log = (tmp_path / "logs" / "c.log").read_text()
    assert log.startswith("$ ") and "the last line" in log
    threads = max(1, (os.cpu_count() or 1) // 2)
    assert f"threads {threads}" in log
    times = job_seconds(tmp_path)
    assert sorted(times) == ["a", "b", "c"] and min(times.values()) > 0


def test_times_of_jobs_done_before_stay(make_job, tmp_path):
    jobs = [make_job("a"), make_job("b")]
    run_jobs(jobs[:1], tmp_path / "logs", 1)
    first = job_seconds(tmp_path)
    run_jobs(jobs, tmp_path / "logs", 1)
    second = job_seconds(tmp_path)
    assert set(second) == {"a", "b"} and second["a"] == first["a"]


def test_what_measures_time_runs_alone(make_job, tmp_path, monkeypatch):
    """With all threads, while none of the others runs."""
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    jobs = [make_job("a"), make_job("b", alone=True), make_job("c")]
    run_jobs(jobs, tmp_path / "logs", at_once=3)
    times = {
        job.name: [
            path.stat().st_mtime_ns
            for path in (job.result.with_suffix(".began"), job.result)
        ]
        for job in jobs
    }
    began, ended = times["b"]
    for other in "ac":
        assert times[other][1] < began or ended < times[other][0]
    assert "threads None" in (tmp_path / "logs" / "b.log").read_text()


def test_so_many_run_at_the_same_time(make_job, tmp_path):
    # Each waits for the other to begin: one by one they would not end.
    jobs = [
        make_job("a", awaited=tmp_path / "b.began"),
        make_job("b", awaited=tmp_path / "a.began"),
    ]
    run_jobs(jobs, tmp_path / "logs", at_once=2)
    assert all(job.is_done for job in jobs)


def test_no_more_run_at_the_same_time(make_job, tmp_path):
    jobs = [make_job("a"), make_job("b")]
    run_jobs(jobs, tmp_path / "logs", at_once=1)
    began = (tmp_path / "b.began").stat().st_mtime_ns
    assert (tmp_path / "a").stat().st_mtime_ns <= began


def test_what_is_done_is_not_done_again(make_job, tmp_path):
    (tmp_path / "a").write_text("before")
    run_jobs([make_job("a"), make_job("b")], tmp_path / "logs", at_once=1)
    assert (tmp_path / "a").read_text() == "before"
    assert not (tmp_path / "a.began").exists()


def test_a_failure_stops_the_others_and_is_shown(make_job, tmp_path):
    jobs = [
        make_job("bad", awaited=tmp_path / "other.began", code=3),
        make_job("other", awaited=tmp_path / "never"),
    ]
    with pytest.raises(RunError) as error:
        run_jobs(jobs, tmp_path / "logs", at_once=2)
    assert "job bad ended with exit code 3" in str(error.value)
    assert str(error.value).endswith("the last line")
    assert (tmp_path / "other.stopped").exists()


def test_a_job_that_leaves_nothing_has_failed(make_job, tmp_path):
    job = make_job("a")
    absent = Job(**{**vars(job), "result": tmp_path / "elsewhere"})
    with pytest.raises(RunError, match="job a ended with exit code 0"):
        run_jobs([absent], tmp_path / "logs", at_once=1)


def test_a_signal_stops_what_runs(make_job, tmp_path):
    def stop():
        while not (tmp_path / "a.began").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    with catch_signals(), pytest.raises(Interrupted):
        thread.start()
        run_jobs(
            [make_job("a", awaited=tmp_path / "never")],
            tmp_path / "logs",
            at_once=1,
        )
    thread.join()
    assert (tmp_path / "a.stopped").exists()
