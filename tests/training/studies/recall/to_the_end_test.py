"""`training/recall.py`, to the end, at sizes that mean nothing."""

import json
import re
import shlex

import pytest

from tests.training.studies.run_here import run_here
from training import recall
from training.studies import study
from training.studies.jobs import run_jobs
from training.studies.recall import step_times
from training.studies.recall import study as recall_study
from training.studies.recall.recipe import parse_recipe
from training.studies.recall.study import RecallStudy

SIZES = (
    "--values 8 --hidden-dim 32 --num-layers 1 --num-heads 2 "
    "--intermediate-dim 32 --memory-layers 1 --num-sub-keys 16 "
    "--memory-top-k 4 --memory-key-dim 16 --batch-size 64"
)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(study, "run_jobs", run_here)
    # Times of such models say nothing.
    monkeypatch.setattr(step_times, "_TURNS", 1)
    monkeypatch.setattr(step_times, "_GUESSES", 1)


@pytest.fixture
def times_are_known(monkeypatch):
    """`test_to_the_end` measures them."""
    known = step_times.StepTimes({}, {"plain": 0.001, "resm-16": 0.002})
    monkeypatch.setattr(recall_study, "measure_step_times", lambda _: known)


@pytest.mark.slow
def test_to_the_end(here, tmp_path, capsys):
    args = f"--out {tmp_path / 'a'} --facts 64 --steps 150 {SIZES}".split()
    args += "--learning-rates 0.01 --memory-learning-rates 0.01 0.02".split()
    args += "--candidates wide-time resm".split()
    assert recall.main(args) == 0
    found = json.loads((tmp_path / "a" / "report.json").read_text())
    resm, wide = found["candidates"]["resm"], found["candidates"]["wide-time"]
    assert resm["steps"] == 150 and resm["exposures"] == 150
    assert resm["recall"] > 0.9
    assert resm["rates"] in [tried["rates"] for tried in resm["grid"]]
    assert not wide["grid"]
    (seed,) = resm["seeds"]
    assert set(seed["ablated"]) == {"zero", "shuffle"}
    assert seed["int8"]["recall"] == pytest.approx(seed["recall"], abs=0.1)
    assert "With values in int8" in found["tables"]
    assert 0.9 * 3 * 64 < resm["bits"] <= 3 * 64
    assert wide["width"] > 32 and "ablated" not in wide["seeds"][0]
    times = [point["seconds"] for point in resm["curve"]]
    assert times == sorted(times) and len(times) == 12
    assert times[-1] == pytest.approx(0.15 * resm["milliseconds"][0])
    page = (tmp_path / "a" / "report.md").read_text()
    assert page in capsys.readouterr().out
    assert "| ResM " in page and "values zero" in page
    assert (tmp_path / "a" / "recall.svg").stat().st_size > 1000
    # Again there is nothing to do, and a second seed is all that is added.
    assert recall.main(args) == 0 and run_here.done == []
    left = RecallStudy(parse_recipe([*args, "--seeds", "2"])).jobs()
    left = [job.name.split("-")[-1] for job in left if not job.is_done]
    assert left == ["1", "1"]
    assert recall.main([*args, "--facts", "65"]) == 2
    assert "--facts was 64, now 65" in capsys.readouterr().err


@pytest.mark.slow
def test_a_causal_model(here, times_are_known, tmp_path):
    facts = tmp_path / "facts.tsv"
    facts.write_text("Oslo\tis in\tNorway\nParis\tis in\tFrance\n")
    args = f"--out {tmp_path / 'a'} --objective causal {SIZES} "
    args += "--learning-rates 0.01 --memory-learning-rates 0.02 "
    args += f"--facts {facts} --candidates resm --steps 40"
    assert recall.main(args.split()) == 0
    found = json.loads((tmp_path / "a" / "report.json").read_text())
    for key, model in found["candidates"].items():
        assert model["recall"] > 0.9, key
        assert "ablated" in model["seeds"][0]


@pytest.mark.slow
def test_a_file_of_facts(here, times_are_known, tmp_path):
    facts = tmp_path / "facts.tsv"
    towns = "Oslo Norway, Paris France, Rome Italy, Lima Peru, Riga Latvia"
    lines = [
        f"{town}\tis the capital of\tthe state of {country}"
        for town, country in map(str.split, towns.split(", "))
    ]
    facts.write_text("\n".join(lines))
    args = f"--out {tmp_path / 'a'} --facts {facts} --steps 2 {SIZES} "
    args += "--candidates init-resm"
    assert recall.main(args.split()) == 0
    found = json.loads((tmp_path / "a" / "report.json").read_text())
    model = found["candidates"]["init-resm"]
    assert model["bits"] is None and model["seeds"][0]["facts"] == 5
    assert model["milliseconds"] == [1, 2] and len(model["curve"]) == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--facts none.tsv", "--facts must be a number of random facts"),
        ("--facts 9000000", "--facts must be from 1 to 8,388,608"),
        ("--facts unicode --sweep facts", "--sweep facts needs random facts"),
        ("--memory-top-k 300", "the sizes must fit together: .*top_k"),
        ("--memory-layers 3", "the sizes must fit together: .*memory_layers"),
        ("--memory-layers", "--memory-layers must be at least one"),
        ("--seconds 0", "--seconds must be above 0"),
        ("--learning-rates -1", "--learning-rates must be at least 0"),
        ("--objective causal --candidates pkm", "--candidates must be without"),
        ("--candidates plain plain", "--candidates must be at least one, each"),
    ],
)
def test_mistakes(tmp_path, capsys, flags, message):
    assert recall.main(["--out", str(tmp_path / "a"), *flags.split()]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
def test_in_processes(tmp_path, capsys):
    """A job that fails is named, with the command that goes on."""
    assert study.run_jobs is run_jobs
    args = f"--out {tmp_path / 'a'} --facts 64 --steps 3 {SIZES}".split()
    args += ["--candidates", "resm"]
    begun = RecallStudy(parse_recipe(args))
    with begun.hold():
        begun.write_recipe()
    begun.step_times.write_text("{}")
    assert recall.main(args) == 1
    error = capsys.readouterr().err
    assert "resm 64 facts 16 sub keys seed 0 ended with exit code" in error
    assert f"To resume: python training/recall.py {shlex.join(args)}" in error
