"""`training/teach.py --compare`, to the end, at sizes that mean nothing."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest

from keras_pkm.teaching import SlotImportance
from tests.models.tiny import ONE_LAYER
from tests.teaching.models import SLOTS
from tests.teaching.models import make_model
from tests.teaching.models import teach as teach_model
from tests.training.studies.run_here import run_here
from tests.training.teach_test import TEXT
from tests.training.teach_test import make_run
from training import teach
from training.runs.files import write_json
from training.runs.user_error import UserError
from training.studies import study
from training.studies.best_rate import best_rate
from training.studies.forgetting import settings
from training.studies.forgetting.chosen_slots import Frequency
from training.studies.forgetting.chosen_slots import RandomSlots
from training.studies.forgetting.merit import learned
from training.studies.forgetting.merit import merit
from training.studies.forgetting.recipe import ForgettingRecipe
from training.studies.forgetting.study import ForgettingStudy
from training.studies.recall.recipe import RecallRecipe

RATES = (
    "--learning-rates 0.001 0.01 --memory-learning-rates 0.01 0.1 "
    "--memory-sgd-rates 10"
)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(study, "run_jobs", run_here)

    def sizes(recipe):
        return RecallRecipe(
            out=recipe.out,
            hidden_dim=32,
            num_layers=1,
            num_heads=2,
            intermediate_dim=32,
            num_sub_keys=16,
            memory_top_k=4,
            memory_key_dim=16,
            batch_size=32,
        )

    monkeypatch.setattr(settings, "_sizes", sizes)


@pytest.mark.slow
def test_random_facts_to_the_end(here, tmp_path, capsys):
    out = tmp_path / "out"
    args = f"--compare --out {out} --old-facts 32 --new-facts 5 --epochs 100 "
    args += f"--group-size 3 --steps 20 --slots 200 {RATES} --methods "
    names = ["values-adam", "slots-sgd"]
    assert teach.main([*args.split(), *names]) == 0
    # Where there is one rate, none is searched.
    bases = ["base-seed-1000", "base-seed-0", "rates-values-adam"]
    assert run_here.done == [*bases, *(f"{each}-seed-0" for each in names)]
    found = json.loads((out / "report.json").read_text())
    assert found["known_before"] == [1.0]
    values, slots = (found["candidates"][name] for name in names)
    assert [each["rate"] for each in values["tried"]] == [0.01, 0.1]
    assert (slots["tried"], slots["rate"]) == ([], 10)
    for way in (values, slots):
        (seed,) = way["seeds"]
        assert way["learned"] == seed["new"]["known_after"]
        assert way["kept"] == seed["old"]["kept"]
        for each in (*way["seeds"], *way["tried"]):
            assert len(each["steps"]) == 2 and max(each["steps"]) <= 20
            assert each["rows"] > 0
            # Groups that were stopped before the last step were known.
            for steps, share in zip(each["steps"], each["learned_then"]):
                assert share == 1 or steps == 20
            assert each["new"]["facts"] == 5
            assert each["old"]["facts"] == 32
    merits = {
        (
            each["right_after"] >= 0.95,
            each["new"]["known_after"] * each["old"]["kept"],
        ): each["rate"]
        for each in values["tried"]
    }
    assert values["rate"] == merits[max(merits)]
    page = (out / "report.md").read_text()
    assert page in capsys.readouterr().out
    assert "knew 100.00 % of 32 random facts" in page
    assert "| important slots, SGD " in page
    assert (out / "forgetting.png").stat().st_size > 10_000

    # Ways can be others; what is there is not done again.
    assert teach.main([*args.split(), "slots-sgd"]) == 0
    assert run_here.done == []
    recipe = dataclasses.replace(
        ForgettingStudy.in_directory(out).recipe,
        methods=(*names, "values-sgd"),
    )
    left = [job for job in ForgettingStudy(recipe).jobs() if not job.is_done]
    assert [job.name for job in left] == ["values-sgd-seed-0"]
    # Other numbers are another comparison.
    args = args.replace("--new-facts 5", "--new-facts 6")
    assert teach.main([*args.split(), *names]) == 2
    assert "--new-facts was 5, now 6" in capsys.readouterr().err


@pytest.mark.slow
def test_text_to_the_end(here, tmp_path, capsys):
    model = make_run(tmp_path / "run", **ONE_LAYER)
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join([TEXT] * 4))
    out = tmp_path / "out"
    args = f"--compare --out {out} --model {model} --text {text} --steps 4 "
    args += f"--methods values-adam --batch-size 4 {RATES}"
    assert teach.main(args.split()) == 2
    assert "pass all three" in capsys.readouterr().err
    args += f" --keep {text}"
    # Only important slots need the text that the model was trained on.
    slots = args.replace("values-adam", "slots-adam").split()
    assert teach.main(slots) == 2
    assert "pass --background TEXT" in capsys.readouterr().err
    assert teach.main(args.split()) == 0
    assert run_here.done == ["rates-values-adam", "values-adam-seed-0"]
    found = json.loads((out / "report.json").read_text())
    assert found["known_before"] is None
    for each in found["candidates"]["values-adam"]["tried"]:
        # Below 0 where a rate was so high that the perplexity rose.
        new = each["new"]
        fallen = 1 - new["perplexity_after"] / new["perplexity_before"]
        assert each["learned"] == pytest.approx(
            min(1, fallen / (1 - new["fall"]))
        )
        assert each["kept"] == pytest.approx(1 / (1 + each["old"]["change"]))
    assert "| values, Adam " in (out / "report.md").read_text()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--seeds 0", "--seeds must be at least 1"),
        ("--learning-rates 0", "--learning-rates must be above 0"),
        ("--memory-sgd-rates 1 1", "--memory-sgd-rates must be at least one"),
        ("--old-facts 9000000", "--facts must be from 1 to"),
        ("--model nowhere --text a --keep b", "--model must be"),
        ("--model nowhere --text a --keep b.tsv", "--keep must be text"),
        ("--model m --text a --keep b --epochs 9", "--epochs would do nothing"),
        ("--fall 0.9", "--fall would do nothing: without --model"),
    ],
)
def test_mistakes(flags, message, here, tmp_path, capsys):
    out = tmp_path / "out"
    assert teach.main(["--compare", "--out", str(out), *flags.split()]) == 2
    assert message in capsys.readouterr().err
    assert not (out / "forgetting.json").exists()


def test_a_job_that_left_nothing_is_named(tmp_path):
    with pytest.raises(UserError, match="--out must have a .*seed-0.json"):
        ForgettingStudy(ForgettingRecipe(out=tmp_path)).collect()


def test_a_trial_of_an_earlier_version_is_named(tmp_path):
    study = ForgettingStudy(ForgettingRecipe(out=tmp_path, methods=("all",)))
    path = study.trial("all", 0)
    path.parent.mkdir()
    write_json(path, {"tried": [{"rate": 0.1, "steps": [3]}]})
    for use in (study.check_inputs, study.collect):
        with pytest.raises(UserError, match="all-seed-0.json' does not say"):
            use()


def test_controls_choose_among_the_slots_that_are_read():
    counted = SlotImportance(3, {1: [3, 1, 0, 0, 2]})
    reads = {1: np.array([6, 2, 3, 0, 1])}
    assert Frequency(counted, 0).best(reads, 3)[1].tolist() == [0, 2, 1]
    chosen = RandomSlots(counted, 0)
    order = chosen.best(reads, 9)[1].tolist()
    assert sorted(order) == [0, 1, 2, 4] and order != [0, 1, 2, 4]
    assert chosen.best({1: 5 * reads[1]}, 9)[1].tolist() == order
    assert len(chosen.best(reads, 2)[1]) == 2
    others = [RandomSlots(counted, seed).best(reads, 9)[1] for seed in range(9)]
    assert len({tuple(each) for each in others}) > 1


@pytest.mark.slow
def test_controls_teach_other_slots():
    """What is chosen is what changes."""
    background = {n: np.arange(SLOTS) % 5 for n in (1, 2)}
    counted, changed = SlotImportance(5, background), []
    for scores in (lambda counted, seed: counted, Frequency, RandomSlots):
        importance = scores(counted, 0)
        patch = teach_model(make_model(), slots=6, importance=importance)
        changed.append(
            {n: set(c.slots) for n, c in patch.changes("applied").items()}
        )
    for one, other in itertools.combinations(changed, 2):
        assert one != other


def test_merit():
    assert merit(1.0, 0.5) < merit(0.99, 1.0)
    # A product alone would prefer the second: -0.1 to -0.02.
    assert merit(-0.1, 1.0) > merit(-0.2, 0.1)
    broken = {"perplexity_before": 9.0, "perplexity_after": math.nan}
    assert merit(learned({"new": {**broken, "fall": 0.5}}), 1.0) == -math.inf


def test_the_best_rate_is_one_that_taught():
    assert best_rate([0.2, 0.95, 1.0], [0.9, 0.3, 0.4]) == 2
    assert best_rate([0.2, 0.95, 1.0], [0.9, 0.5, 0.4]) == 1
    assert best_rate([0.2, 0.94], [0.9, 0.3]) == 0


def _tried(rate, steps, known):
    return {
        "rate": rate,
        "learned": known,
        "kept": known,
        "steps": steps,
        "learned_then": [1.0, known],
        "new": {"facts": 4, "known_after": known},
        "old": {"facts": 9, "kept": known},
    }


def test_the_report_says_what_the_caps_left_out(tmp_path):
    """What the cap of steps stopped, and rates at the edge of their grid."""
    steps = [[20, 20], [20, 7], [3, 4]]
    tried = [
        _tried(rate, each, known)
        for rate, each, known in zip((0.1, 0.2, 0.3), steps, (0.5, 0.2, 0.1))
    ]
    ways = {
        name: {
            "title": name,
            "rates": [each["rate"] for each in tried[:length]],
            "tried": tried[:length] if length > 1 else [],
            **tried[best],
            "seeds": [tried[best]],
        }
        for name, length, best in (
            ("low", 3, 0),
            ("middle", 3, 1),
            ("high", 3, 2),
            ("alone", 1, 0),
        )
    }
    recipe = ForgettingRecipe(out=tmp_path, steps=20)
    findings = {"candidates": ways, "known_before": [1.0]}
    first, second, *_ = names = [
        job.name for job in ForgettingStudy(recipe).jobs()
    ]
    times = {first: 3600, second: 1800, "of another seed": 7200}
    write_json(tmp_path / "seconds.json", times)
    ForgettingStudy(recipe).write_report(findings)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["known_before"] == [1.0]
    table = report["tables"]["The best learning rate of each way"]
    columns = ["what is trained", "rate", "groups learned", "at all rates"]
    assert table["columns"][:4] == columns
    assert {row[0]: row[1:4] for row in table["rows"]} == {
        "low": ["0.1 (lowest)", "0 of 2", "3 of 6"],
        "middle": ["0.2", "1 of 2", "3 of 6"],
        "high": ["0.3 (highest)", "2 of 2", "3 of 6"],
        "alone": ["0.1", "0 of 2", "-"],
    }
    page = (tmp_path / "report.md").read_text()
    assert f"2 of {len(names)} jobs took 1.5 hours in all" in page
