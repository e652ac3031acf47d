"""The whole comparison at its quickest, killed once on the way."""

import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.training.studies.run_here import run_here
from tests.training.tiny_run import ROOT
from tests.training.tiny_run import write_corpus
from tests.training.tiny_run import write_glue
from training import reproduce
from training.studies import study
from training.studies.papers import papers

# Five commands, of two of the seven models. Reports of runs that were not
# trained, with all orders, are in tests/training/studies/papers/report_test.py,
# the runner's tests in tests/training/studies/jobs_test.py.
pytestmark = pytest.mark.slow


SOME = "af"


@pytest.fixture(scope="module", autouse=True)
def some_models():
    paper = papers.PAPERS["kim-jung"]
    some = dataclasses.replace(
        paper,
        models={key: paper.models[key] for key in SOME},
        perplexity_order=(("f", "a"),),
        usage_order=(),
        first_order=(),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(papers.PAPERS, "kim-jung", some)
        yield


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    root = tmp_path_factory.mktemp("comparison")
    return [
        *("--quick", "--text", write_corpus(root / "corpus.txt")),
        *("--glue", write_glue(root / "glue"), "--out", str(root / "out")),
    ]


@pytest.fixture(scope="module")
def out(command):
    """Its directory, after a kill and a second call."""
    directory = pathlib.Path(command[-1])
    script = [sys.executable, str(ROOT / "training" / "reproduce.py")]
    first = subprocess.Popen([*script, *command], stderr=subprocess.DEVNULL)
    finished = directory / "seed-0" / "a" / "results.json"
    while not finished.exists():
        assert first.poll() is None
        time.sleep(0.1)
    first.terminate()
    assert first.wait(timeout=120) == 128 + 15
    before = finished.stat().st_mtime_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "run_jobs", run_here)
        assert reproduce.main(command) == 0
    assert finished.stat().st_mtime_ns == before
    return directory


def test_report(out):
    report = json.loads((out / "report.json").read_text())
    text = (out / "report.md").read_text()
    assert list(report["models"]) == list(SOME)
    for key, model in report["models"].items():
        (figures,) = model["seeds"]
        with np.load(out / "seed-0" / key / "held_out_losses.npz") as file:
            mean = file["nll"].sum() / file["tokens"].sum()
        assert figures["perplexity"] == pytest.approx(np.exp(mean))
        assert f"{figures['perplexity']:.2f}" in text
        assert bool(figures["memory_usage"]) == (key == "f")
        # The plain model has not been measured before it was trained.
        before = figures["perplexity_before"]
        assert (before is not None) == (key == "f")
        assert set(figures["stale"]) == set(figures["memory_usage"])
    (row,) = report["orderings"]
    assert row["what"] == "perplexity f < a"
    ((difference, low, high),) = row["differences"]
    ours, theirs = (
        report["models"][key]["seeds"][0]["perplexity"] for key in "fa"
    )
    assert difference == pytest.approx(np.log(theirs / ours))
    assert row["verdict"] == (
        "seen"
        if low > 0
        else "the other way round"
        if high < 0
        else "not told apart"
    )
    assert "the paper's" in text and "nothing else" in text
    assert "Seeds: 1 each" in text
    ran = [line for line in text.splitlines() if line.startswith("python ")]
    assert len(ran) == 2 + 3
    tuned = report["fine_tuning"]["sst2"]
    assert [key for key, kinds in tuned.items() if "frozen" in kinds] == ["f"]


def test_files(out):
    names = {path.name for path in out.iterdir() if path.suffix == ".png"}
    assert names == {"curves.png", "staleness-f.png"}
    page = (out / "report.html").read_text()
    assert page.count("<img ") == len(names) and "<script" not in page


def test_a_finished_comparison_only_reports(out, command, capsys):
    (out / "report.md").unlink()
    assert reproduce.main(command) == 0
    # Jobs are announced by their numbers.
    assert not re.search(r"\[\d+/\d+\]", capsys.readouterr().out)
    assert (out / "report.md").exists()
