"""The whole comparison at its quickest, killed once on the way."""

import dataclasses
import json
import pathlib
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

# Eight commands, of three of the seven models. Reports of runs that were not
# trained are in tests/training/studies/papers/report_test.py, the runner's
# tests in tests/training/studies/jobs_test.py.
pytestmark = pytest.mark.slow


SOME = "aef"
# What the report orders: by perplexity, use, and perplexity before training.
ORDERS = ((("f", "e"), ("e", "a"), ("f", "a")), (("f", "e"),), (("e", "f"),))


@pytest.fixture(scope="module", autouse=True)
def some_models():
    paper = papers.PAPERS["kim-jung"]
    perplexity, usage, first = ORDERS
    some = dataclasses.replace(
        paper,
        models={key: paper.models[key] for key in SOME},
        perplexity_order=perplexity,
        usage_order=usage,
        first_order=first,
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
        assert bool(figures["memory_usage"]) == (key in "ef")
        # The plain model has not been measured before it was trained.
        before = figures["perplexity_before"]
        assert (before is not None) == (key in "ef")
        assert set(figures["stale"]) == set(figures["memory_usage"])
    for row in report["orderings"][:3]:
        lower, higher = row["what"].removeprefix("perplexity ").split(" < ")
        ((difference, low, high),) = row["differences"]
        ours, theirs = (
            report["models"][key]["seeds"][0]["perplexity"]
            for key in (lower, higher)
        )
        assert difference == pytest.approx(np.log(theirs / ours))
        assert row["verdict"] == (
            "seen"
            if low > 0
            else "the other way round"
            if high < 0
            else "not told apart"
        )
    for row in report["orderings"][3:]:
        higher, lower = row["what"].rsplit(maxsplit=3)[1::2]
        ours, theirs = (
            report["models"][key]["seeds"][0] for key in (higher, lower)
        )
        expected = (
            ours["memory_usage"]["1"]["top1_mu"]
            - theirs["memory_usage"]["1"]["top1_mu"]
            if row["kind"] == "use"
            else np.log(ours["perplexity_before"] / theirs["perplexity_before"])
        )
        assert row["differences"] == [pytest.approx(expected)]
        assert row["verdict"] == ("seen" if expected >= 0 else "not seen")
    assert len(report["orderings"]) == sum(map(len, ORDERS))
    assert "the paper's" in text and "nothing else" in text
    assert "Seeds: 1 each" in text
    ran = [line for line in text.splitlines() if line.startswith("python ")]
    assert len(ran) == 3 + 5
    tuned = report["fine_tuning"]["sst2"]
    assert [key for key, kinds in tuned.items() if "frozen" in kinds] == [*"ef"]


def test_files(out):
    names = {path.name for path in out.iterdir() if path.suffix == ".png"}
    assert names == {"curves.png"} | {f"staleness-{key}.png" for key in "ef"}
    page = (out / "report.html").read_text()
    assert page.count("<img ") == len(names) and "<script" not in page


def test_a_finished_comparison_only_reports(out, command, capsys):
    (out / "report.md").unlink()
    assert reproduce.main(command) == 0
    assert "[1/" not in capsys.readouterr().err
    assert (out / "report.md").exists()
