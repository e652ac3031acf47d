"""What is compared: trials, widths, steps, and the tables of the findings."""

import itertools
import pathlib

import numpy as np
import pytest

from keras_pkm.layers import NGramMemory
from keras_pkm.models import memories
from keras_pkm.models import tables
from training.facts.random_facts import RandomFacts
from training.runs.files import write_json
from training.runs.user_error import UserError
from training.studies.recall import step_times
from training.studies.recall import study as recall
from training.studies.recall.candidates import CANDIDATES
from training.studies.recall.models import build_model
from training.studies.recall.models import compile_model
from training.studies.recall.models import width_of_as_many_parameters
from training.studies.recall.recipe import parse_recipe
from training.studies.recall.report import make_tables
from training.studies.recall.step_times import StepTimes
from training.studies.recall.step_times import measure_table_times
from training.studies.recall.study import RecallStudy
from training.studies.recall.trials import grid_trials
from training.studies.recall.trials import main_trials
from training.studies.recall.trials import name_of_series
from training.studies.recall.trials import next_trial
from training.studies.recall.trials import rate_pairs
from training.studies.recall.trials import sweep_series


def recipe_of(flags=""):
    return parse_recipe(["--out", "somewhere", *flags.split()])


def test_the_default_has_one_trial_of_each():
    recipe = recipe_of()
    assert [trial.name for trial in main_trials(recipe)] == [
        "plain-48000-facts-seed-0",
        "wide-time-48000-facts-seed-0",
        "resm-48000-facts-256-sub-keys-seed-0",
    ]
    assert recipe.out == pathlib.Path("somewhere")


def test_the_proof_chooses_rates_with_another_seed():
    recipe = recipe_of("--full")
    for key in recipe.candidates:
        candidate = CANDIDATES[key]
        grid = grid_trials(recipe, key)
        assert len(grid) == (6 if candidate.has_memory else 3)
        seeds = {trial.seed for trial in grid}
        assert not seeds & {trial.seed for trial in main_trials(recipe)}
    names = [trial.name for trial in main_trials(recipe)]
    assert len(set(names)) == len(names) == 3 * 6
    assert recipe_of("--full --seeds 1").seeds == 1


@pytest.mark.parametrize(
    ("recalls", "tried", "best"),
    [
        ([0.2, 0.999, 1.0, 1.0], 2, (0.1, 0.4)),
        ([0.2, 0.7, 0.99, 0.3], 4, (0.2, 0.3)),
    ],
)
def test_rates_are_tried_until_nothing_is_left_to_learn(
    monkeypatch, tmp_path, recalls, tried, best
):
    flags = "--learning-rates 0.1 0.2 --memory-learning-rates 0.3 0.4"
    recipe = parse_recipe(["--out", str(tmp_path), *flags.split()])
    write_json(tmp_path / "step-times.json", {"widths": {}, "seconds": {}})
    study = RecallStudy(recipe)
    learned = []

    def fake_learn(recipe, trial, times, rates):
        learned.append(rates)
        return {"recall": recalls[len(learned) - 1]}

    monkeypatch.setattr(recall, "learn", fake_learn)
    assert study.find_rates("resm") == {"rates": best}
    assert learned == rate_pairs(recipe, "resm")[:tried]
    made = study.made(grid_trials(recipe, "resm"))
    assert [trial.rates for trial in made] == learned
    # Only what is missing is tried again.
    study.trial(made[0]).unlink()
    learned.clear()
    assert study.find_rates("resm") == {"rates": best}
    assert learned == rate_pairs(recipe, "resm")[:1]


def test_the_sweep_shares_trials_with_the_comparison():
    recipe = recipe_of("--facts 60000 --sweep facts")
    main = main_trials(recipe)
    sweep = {name_of_series(each): each for each in sweep_series(recipe)}
    assert len(sweep) == 3 + 3
    assert {len(series) for series in sweep.values()} == {5}
    assert set(main) <= {trial for series in sweep.values() for trial in series}
    study = RecallStudy(recipe)
    jobs = {job.name: job for job in study.jobs()}
    for name, series in sweep.items():
        shared = [trial for trial in series if trial in main]
        assert len(shared) == (0 if series[0].num_sub_keys != 256 else 1)
        needs = jobs[f"sweep-{name}"].needs
        assert {study.trial(trial) for trial in shared} <= {*needs}


def test_a_sweep_finds_the_largest_number_by_bisection(monkeypatch, tmp_path):
    recipe = parse_recipe(
        ["--out", str(tmp_path), "--facts", "16", "--sweep", "facts"]
        + ["--sweep-facts", "4", "2", "8", "16", "32", "--candidates", "plain"]
    )
    write_json(tmp_path / "step-times.json", {"widths": {}, "seconds": {}})
    learned = []

    def fake_learn(recipe, trial, times, rates):
        learned.append(trial.num_facts)
        return {"recall": 0.95 if trial.num_facts <= 4 else 0.949}

    monkeypatch.setattr(recall, "learn", fake_learn)
    (series,) = sweep_series(recipe)
    study = RecallStudy(recipe)
    assert study.try_series(series) == {"facts": [4, 8, 16]}
    # It begins with the number of facts of the comparison.
    assert learned == [16, 4, 8]
    assert {trial.num_facts for trial in study.made(series)} == {4, 8, 16}
    # What is there is not trained again.
    assert study.try_series(series) == {"facts": [4, 8, 16]}
    assert len(learned) == 3


@pytest.mark.parametrize("first", [2, 7, 8, 32])
@pytest.mark.parametrize("capacity", [0, 1, 2, 4, 8, 16, 32, 64])
def test_bisection_finds_what_all_trials_would_show(capacity, first):
    recipe = recipe_of(
        "--facts 8 --sweep facts --candidates plain --sweep-facts 2 4 8 16 32"
    )
    (series,) = sweep_series(recipe)
    recalls = {}
    while (trial := next_trial(series, recalls, first)) is not None:
        assert trial not in recalls
        recalls[trial] = float(trial.num_facts <= capacity)
    assert len(recalls) <= 4
    learned = [t.num_facts for t, recall in recalls.items() if recall]
    expected = [n for n in (2, 4, 8, 16, 32) if n <= capacity]
    assert max(learned, default=0) == max(expected, default=0)


def test_steps_follow_from_the_times():
    times = StepTimes({"wide-time": 99}, {"plain": 0.1, "resm-256": 0.2})
    recipe = recipe_of("--seconds 60 --candidates plain resm init-resm")
    stages = {
        trial.key: times.stages(recipe, trial) for trial in main_trials(recipe)
    }
    assert stages["plain"] == [("plain", 600, 0.1)]
    assert stages["resm"] == [("resm", 300, 0.2)]
    assert stages["init-resm"] == [("plain", 300, 0.1), ("resm", 150, 0.2)]
    for found in stages.values():
        assert sum(steps * s for _, steps, s in found) == pytest.approx(60)
    recipe = recipe_of("--steps 7 --candidates plain init-resm")
    steps = [
        [steps for _, steps, _ in times.stages(recipe, trial)]
        for trial in main_trials(recipe)
    ]
    assert steps == [[7], [4, 4]]
    assert times.width(recipe, "wide-time") == 99
    assert times.width(recipe, "plain") == 256


def test_steps_follow_from_exposures():
    times = StepTimes({}, {"plain": 0.1, "resm-256": 0.2})
    recipe = recipe_of(
        "--exposures 30 --facts 1000 --batch-size 64 --candidates plain resm"
    )
    for trial in main_trials(recipe):
        ((_, steps, _),) = times.stages(recipe, trial)
        assert steps == 469  # 30 * 1000 / 64
    for flags in ("--exposures 3 --steps 3", "--exposures 3 --facts unicode"):
        with pytest.raises(UserError, match="--exposures must be without"):
            recipe_of(flags).check()


class FakeTimer:
    """Times that follow from the widths alone."""

    def __init__(self, recipe):
        self.models = {}

    def add(self, key, width=256, num_sub_keys=256):
        memory = 0
        if CANDIDATES[key].has_memory:
            key, memory = f"{key}-{num_sub_keys}", 0.05 + num_sub_keys / 10_000
        self.models[key] = 0.03 + width / 5000 + memory

    def measure(self, keys, turns):
        return {key: self.models[key] for key in keys}


def test_a_plain_model_is_widened_until_it_takes_as_long(monkeypatch):
    monkeypatch.setattr(step_times, "_Timer", FakeTimer)
    times = step_times.measure_step_times(recipe_of())
    seconds = times.seconds
    assert times.widths.keys() == {"wide-time"}
    assert seconds["wide-time"] == pytest.approx(seconds["resm-256"], rel=0.01)
    assert seconds["plain"] < 0.7 * seconds["resm-256"]


def test_other_tables_are_timed_in_proportion(monkeypatch):
    monkeypatch.setattr(step_times, "_Timer", FakeTimer)
    recipe = recipe_of("--sweep facts")
    # As measured when the machine was twice as fast.
    fake = FakeTimer(recipe)
    fake.add("resm")
    times = StepTimes({}, {"resm-256": fake.models["resm-256"] / 2})
    found = measure_table_times(recipe, times).seconds
    fake.add("resm", num_sub_keys=512)
    assert found["resm-512"] == pytest.approx(fake.models["resm-512"] / 2)
    assert found["resm-256"] == times.seconds["resm-256"]


def test_a_plain_model_is_widened_to_as_many_parameters():
    recipe = recipe_of("--hidden-dim 32 --num-sub-keys 32")
    facts = RandomFacts(100)

    plain, resm = (
        build_model(recipe, facts, key, seed=0) for key in ("plain", "resm")
    )
    width = width_of_as_many_parameters(recipe, plain, resm)
    wide = build_model(recipe, facts, "wide-parameters", seed=0, width=width)
    assert wide.count_params() == pytest.approx(resm.count_params(), rel=1e-3)
    assert width > recipe.intermediate_dim


@pytest.mark.parametrize("name", CANDIDATES)
def test_candidates_have_what_they_say(name):
    candidate = CANDIDATES[name]
    recipe = recipe_of("--num-sub-keys 32")
    model = build_model(recipe, RandomFacts(100), name, seed=0)
    compile_model(model, recipe, name, steps=10, rates=(0.1, 0.1))
    layers = candidate.memory_layers or (1,)
    assert tuple(memories(model)) == (layers if candidate.has_memory else ())
    assert model.backbone.num_layers == 2 * candidate.times_layers
    for memory in memories(model).values():
        if candidate.ngrams:
            assert isinstance(memory, NGramMemory)
            assert memory.orders == candidate.ngrams
            assert memory.num_slots == 32**2
        for option, value in candidate.memory.items():
            assert getattr(memory, option) == value
    for option, value in candidate.optimizer.items():
        assert getattr(model.optimizer, option) == value
    num_tables = 1 if candidate.share_table else len(memories(model))
    assert len(tables(model)) == num_tables


@pytest.mark.parametrize("name", ["experts-1", "experts-2"])
def test_a_mixture_has_as_many_parameters_as_resm(name):
    recipe = recipe_of("--num-sub-keys 128")
    counts = [
        build_model(recipe, RandomFacts(100), key, seed=0).count_params()
        for key in (name, "resm")
    ]
    assert counts[0] == pytest.approx(counts[1], rel=0.05)


def test_experts_have_rates_of_their_own():
    recipe = recipe_of("--learning-rates 1 2 --expert-rates 1 4")
    pairs = [(1, 1), (1, 4), (2, 2), (2, 8)]
    assert rate_pairs(recipe, "experts-2") == pairs


def test_plain_candidates_can_have_rates_of_their_own():
    recipe = recipe_of("--full --plain-learning-rates 1 2 3 4 5 6")
    assert len(rate_pairs(recipe, "plain")) == 6
    assert len(rate_pairs(recipe, "resm")) == 6
    assert {first for first, _ in rate_pairs(recipe, "resm")} == {
        *(1e-3, 2e-3, 4e-3)
    }


def test_first_weights():
    """The memory's are its own, the others as the comparison draws them."""
    recipe = recipe_of("--num-sub-keys 32")
    model = build_model(recipe, RandomFacts(100), "resm", seed=0)
    drawn = {
        variable.path: variable.numpy()
        for variable in model.trainable_variables
        if variable.name in ("kernel", "embeddings", "values")
    }
    glorot = (2 / (64 + 64)) ** 0.5
    for path, deviation in (
        ("token_embedding/embeddings", 0.1),
        ("transformer_layer_0/self_attention_layer/key/kernel", glorot),
        ("transformer_layer_1/self_attention_layer/value/kernel", 2 * glorot),
        ("transformer_layer_0_with_memory/memory/table/values", 1 / 8),
    ):
        assert drawn[path].std() == pytest.approx(deviation, rel=0.05), path
    for one, other in itertools.combinations(drawn.values(), 2):
        number = min(one.size, other.size)
        assert not np.array_equal(one.ravel()[:number], other.ravel()[:number])


def result(recall, used=0.5, **others):
    usage = {
        "2": {"mu": used, "top1_mu": used / 2},
        "3": {"mu": 1.0, "top1_mu": 0.5},
    }
    found = {"recall": recall, "memory_usage": usage, **others}
    ablated = {"zero": 0.001, "shuffle": 0.002}
    return {"ablated": ablated, "curve": [], **found}


def test_tables():
    resm = {
        **{"title": "ResM", "parameters": 1000, "width": 256, "steps": 10},
        "optimizer_bytes": 3 * 2**20,
        **{"milliseconds": [12.3], "exposures": 2.5, "rates": [1e-3, 1e-2]},
        **{"recall": 0.9, "bits": 2000.0, "grid": []},
        "seeds": [result(0.8), result(0.9, 0.4), result(0.95, 0.6)],
    }
    sweep = [
        {"candidate": key, "num_sub_keys": size, "facts": n, "recall": recall}
        for key, size, n, recall in (
            *(("plain", 128, 100, 0.96), ("plain", 128, 200, 0.5)),
            *(("resm", 128, 100, 1.0), ("resm", 128, 200, 0.95)),
            *(("resm", 256, 200, 0.2), ("resm", 256, 100, 0.3)),
        )
    ]
    findings = {"candidates": {"resm": resm}, "sweep": sweep}
    found = make_tables({**findings, "num_sub_keys": 128})
    tables = {table.title: (table.header, table.rows) for table in found}
    _, ((*row, bits_each),) = tables["What each model knows"]
    assert row[-2:] == ["90.0 (80.0 to 95.0)", "2,000"] and bits_each == "2.00"
    _, (row,) = tables["What is left without the memory's contents"]
    assert row[2:4] == ["0.10 (0.10 to 0.10)", "0.20 (0.20 to 0.20)"]
    # Of all seeds, as the other columns.
    used = "50.0 (40.0 to 60.0), 100.0 (100.0 to 100.0)"
    assert row[4:] == [used, "25.0 (20.0 to 30.0), 50.0 (50.0 to 50.0)"]
    assert "How soon each model knows 95%" not in tables
    header, rows = tables["More and more facts"]
    assert header == ["model", "100 facts", "200 facts", "learned"]
    assert rows == [
        ["plain", "96.0", "50.0", "100"],
        ["ResM", "100.0", "95.0", "200"],
    ]
    _, rows = tables["Larger and larger tables"]
    assert rows[1] == ["65,536 slots", "30.0", "20.0", "-"]


def test_how_soon_models_know_nearly_all():
    def seed(*recalls):
        curve = [
            {"step": 4 * place, "seconds": 2.0 * place, "recall": recall}
            for place, recall in enumerate(recalls, 1)
        ]
        return {**result(recalls[-1]), "curve": curve}

    model = {
        **{"parameters": 1000, "width": 256, "steps": 12, "exposures": 24.0},
        **{"milliseconds": [1.0], "rates": [1e-3, 1e-2], "recall": 1.0},
        **{"bits": None, "optimizer_bytes": None, "grid": []},
    }
    models = {
        "resm": {
            **model,
            "title": "ResM",
            "seeds": [seed(0.5, 0.95, 1.0), seed(0.9, 0.9, 1.0), seed(0.95)],
        },
        "plain": {
            **model,
            "title": "plain",
            "seeds": [seed(0.1, 0.2), seed(0.5, 1.0), seed(0.9, 0.94)],
        },
    }
    found = make_tables({"candidates": models, "sweep": [], "num_sub_keys": 1})
    (table,) = (t for t in found if t.title == "How soon each model knows 95%")
    # 2, 4 and 5 seconds: the second one is half of the way at 95 %.
    assert table.rows == [
        [
            "ResM",
            "4 (2 to 5)",
            "8 (4 to 10)",
            "16.0 (8.0 to 20.0)",
        ],
        ["plain", *["not by 2 of 3"] * 3],
    ]


def test_a_comparison_of_an_earlier_version_is_refused(tmp_path):
    stored = {"out": str(tmp_path), "contenders": ["plain"]}
    write_json(tmp_path / "recall.json", stored)
    study = RecallStudy(parse_recipe(["--out", str(tmp_path)]))
    with pytest.raises(UserError, match="has contenders: use the version"):
        with study.hold():
            pass
