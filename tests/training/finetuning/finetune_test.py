"""The command on GLUE's tasks, with tiny models."""

import keras_hub
import numpy as np
import pytest

from keras_pkm import models
from tests.markdown import squeezed
from tests.soak.stopped_run import stopped_after
from training.commands import strategy

MEMORY_FLAGS = (
    "--num-sub-keys 8 --memory-heads 2 --memory-top-k 4 --memory-key-dim 8"
)


@pytest.mark.slow
def test_learns_and_reports(finetune, glue, tmp_path, capsys):
    results = finetune(glue, "small", "--seeds 2 --epochs 25")
    accuracy = results["summary"]["dev accuracy"]
    assert accuracy["max"] > 0.9
    assert accuracy["min"] <= accuracy["median"] <= accuracy["max"]
    assert set(results["seeds"]) == {"0", "1"}
    assert len(results["seeds"]["0"]["epochs"]) == 25
    assert results["seeds"]["0"] != results["seeds"]["1"]
    text = (tmp_path / "run" / "results.md").read_text()
    assert text in capsys.readouterr().out
    assert "| the paper's +Init+ResM | 94.0 |" in squeezed(text)
    assert "| the most frequent class |" in squeezed(text)
    best = keras_hub.models.TextClassifier.from_preset(
        str(tmp_path / "run" / "seed-0" / "best")
    )
    assert isinstance(best, models.MemoryBertTextClassifier)
    logits = best.predict(["good film", "bad film"], verbose=0)
    assert list(logits.argmax(-1)) == [1, 0]


@pytest.mark.slow
def test_two_dev_sets(finetune, glue):
    results = finetune(
        glue,
        "plain",
        f"--epochs 1 --memory-layers 1 2 --memory-block pkm {MEMORY_FLAGS}",
        "mnli",
    )
    assert list(results["summary"]) == [
        "dev_matched accuracy",
        "dev_mismatched accuracy",
    ]
    assert results["memory_layers"] == [1, 2]
    assert results["memory_block"] == "pkm"
    assert all(0 <= share < 1 for share in results["baseline"].values())


@pytest.mark.slow
def test_mirrored(finetune, squad, mirrored, monkeypatch):
    """Two devices: what one gives, but for the order of sums."""
    create_strategy = strategy.create_strategy
    # One for all tests: those of one process confuse their collective ops.
    monkeypatch.setattr(
        strategy,
        "create_strategy",
        lambda name, _: (
            mirrored if name == "mirrored" else create_strategy(name)
        ),
    )
    flags = "--stride 4 --precision float32 --strategy"
    one, two = (
        finetune(squad, "small", f"{flags} {name}", "squad", name=name)
        for name in ("default", "mirrored")
    )
    assert list(one["summary"]) == list(two["summary"])
    for old, new in zip(
        one["seeds"]["0"]["epochs"], two["seeds"]["0"]["epochs"]
    ):
        for name, value in new.items():
            # A row of the 48 may change sides.
            assert value == pytest.approx(old[name], abs=1.01 / 48), name


@pytest.mark.slow
def test_frozen_memory(finetune, presets, glue, tmp_path):
    finetune(glue, "small", "--epochs 1 --freeze values keys queries")
    before = keras_hub.models.Backbone.from_preset(str(presets / "small"))
    after = keras_hub.models.Backbone.from_preset(
        str(tmp_path / "run" / "seed-0" / "best")
    )
    same = {
        old.path: np.array_equal(old, new)
        for old, new in zip(before.weights, after.weights)
    }
    assert all(same[path] for path in same if "/memory/" in path)
    assert not same["pooled_dense/kernel"]


@pytest.mark.slow
def test_goes_on_where_it_was_stopped(finetune, glue, capsys):
    whole = finetune(glue, "small", name="whole")
    with stopped_after(6):
        finetune(glue, "small", code=143, name="parts")
    capsys.readouterr()
    assert finetune(glue, "small", name="parts") == whole
    assert "Seed 0 resumes after 6 of 8 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "flags", "message"),
    [
        ("resm", "--memory-layers 1", "has one in layers 2: leave the flags"),
        ("plain", "--memory-block resm", "--memory-layers, such as 4 8"),
        ("plain", "--memory-heads 2", "--memory-layers, such as 4 8"),
        ("plain", "--num-sub-keys 0", "--num-sub-keys must be at least 1"),
        ("plain", "--freeze values", "needs a model with memory"),
        ("plain", "--freeze values --memory-layers 1", "values of a memory"),
        ("plain", "--sequence-length 500", "at most the model's 20"),
        ("plain", "--memory-layers 4", "different numbers from 1"),
        ("plain", "--seed -1", "--seed must be at least 0"),
        ("plain", "--clip-norm nan", "--clip-norm must be a finite number"),
        ("plain", "--stride 4", "--stride would do nothing: --task sst2"),
        ("plain", "--limit 0", "--limit must be at least 1, received 0"),
        ("plain", "--dropout 1", "--dropout must be below 1"),
        ("plain", "--learning-rate 0", "--learning-rate must be above 0"),
        ("nothing", "", "--model must be a run directory, a preset or"),
    ],
)
def test_mistakes(finetune, glue, tmp_path, capsys, model, flags, message):
    finetune(glue, model, flags, code=2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_bad_rows(finetune, glue, tmp_path, capsys):
    broken = tmp_path / "SST-2"
    broken.mkdir()
    for name in ("train", "dev"):
        text = (glue / "SST-2" / f"{name}.tsv").read_text()
        (broken / f"{name}.tsv").write_text(f"{text}no label\n")
    finetune(tmp_path, "plain", code=2)
    assert "train.tsv, line 66: a row must" in capsys.readouterr().err
    finetune(tmp_path, "plain", "--skip-bad-rows --epochs 1")
    assert "2 bad rows were left out" in capsys.readouterr().out
