"""The command: a tiny run from text to model, and what goes on from it."""

import json
from pathlib import Path

import keras_hub
import numpy as np
import pytest

from keras_pkm import models
from keras_pkm.teaching import SlotImportance
from tests.training.tiny_run import SHORT
from training import evaluate_mlm
from training.corpora.packed_text import open_packed
from training.loading.pretrained_model import load_language_model
from training.loading.pretrained_model import load_tokenizer
from training.pretrain import main
from training.pretraining.logs import read_rows

ROOT = Path(__file__).parents[2]
HUGGING_FACE = ROOT / "tests" / "converters" / "hugging_face" / "bert"


@pytest.fixture
def train(tiny_run, tmp_path):
    """Runs the command with a short stage and returns its results."""

    def train(*args, name="run"):
        command = ["--text", str(tiny_run.corpus), *SHORT, *args]
        assert main([*command, "--out", str(tmp_path / name)]) == 0
        return json.loads((tmp_path / name / "results.json").read_text())

    return train


def test_prints_what_the_memory_brought(tiny_run):
    assert "1 device(s), mixed_bfloat16" in tiny_run.stdout
    assert "right after adding it (resm)" in tiny_run.stdout
    assert "PKMAdam: 1,024 parameters in 1 value tables" in tiny_run.stderr
    table = tiny_run.files.results_table.read_text()
    assert table in tiny_run.stdout
    names = [line.split("|")[1].strip() for line in table.splitlines()[2:6]]
    assert names == [
        "unigram",
        "plain",
        "+Init resm, before training",
        "+Init resm",
    ]
    results = tiny_run.files.read_results()
    assert [stage["name"] for stage in results["stages"]] == [
        "plain",
        "+Init resm",
    ]
    with np.load(tiny_run.files.held_out_losses) as file:
        mean = file["nll"].sum() / file["tokens"].sum()
    last = results["stages"][1]
    assert last["perplexity"] == pytest.approx(np.exp(mean), rel=1e-12)
    logs = tiny_run.files.stage_logs("resm")
    *_, watched = read_rows(logs.epochs, "epoch")
    # The same evaluation: held-out text is measured once.
    assert last["perplexity"] == float(watched["val_perplexity"])
    usage = last["memory_usage"]["2"]
    assert 0 < usage["top1_mu"] <= usage["mu"] <= 1
    *_, watched = read_rows(logs.memory, "step")
    # While it trains, a part of the held-out text is read; at its end, all.
    assert usage["top1_reads"] > int(watched["top1_reads"]) > 0


@pytest.mark.slow
def test_in_how_many_batches_each_slot_is_read(tiny_run):
    run, recipe = tiny_run.files, tiny_run.files.read_recipe()
    stored = SlotImportance.load(run.document_frequencies)
    assert stored.num_batches == recipe["steps"] == 6
    # The same, counted by the model as it was saved.
    task, family, tokenizer = load_language_model(str(run.last))
    length = recipe["sequence_length"]
    objective = family.make_objective(tokenizer, length, recipe["mask_rate"])
    batches = objective.training_batches(
        open_packed(run.packed_train, length, tokenizer.vocabulary_size()),
        batch_size=recipe["batch_size"],
        seed=recipe["seed"] + 1,
        num_steps=6,
    )
    counted = SlotImportance.of_background(task, batches)
    assert set(stored.document_frequencies) == {2}
    stored, counted = (
        each.document_frequencies[2] for each in (stored, counted)
    )
    # In half precision a near tie may fall otherwise.
    assert np.abs(stored - counted).sum() <= 0.02 * counted.sum()
    assert counted.sum() > 0


@pytest.mark.slow
def test_the_run_directory_is_enough(tiny_run):
    run = tiny_run.files
    recipe = run.read_recipe()
    assert recipe["recipe"] == "laptop" and recipe["steps"] == 6
    vocabulary = load_tokenizer(str(run.tokenizer)).get_vocabulary()
    assert vocabulary[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for name in ("best", "last", "plain"):
        task = keras_hub.models.MaskedLM.from_preset(str(run.root / name))
        tokenizer = task.preprocessor.tokenizer
        assert tokenizer.get_vocabulary() == vocabulary
    assert task.predict(["bat hould"], verbose=0).shape[0] == 1
    rows = read_rows(run.stage_logs("resm").epochs, "epoch")
    assert "val_perplexity" in rows[-1] and "memory_2_top1_mu" in rows[-1]
    assert list(run.stage_logs("plain").tensorboard.rglob("events*"))
    assert not list(run.root.rglob("*.partial"))


@pytest.mark.slow
@pytest.mark.parametrize("source", ["run", "preset"])
def test_init_from(tiny_run, train, source):
    start = tiny_run.path if source == "run" else tiny_run.files.plain
    (stage,) = train("--init-from", str(start))["stages"]
    assert stage["name"] == "+Init resm"
    old = tiny_run.files.read_results()["stages"]
    expected = old[1 if source == "run" else 0]["perplexity"]
    # ResM starts as the model that it continues, which was measured in mixed
    # precision.
    assert stage["perplexity_before"] == pytest.approx(expected, rel=2e-3)


@pytest.mark.slow
def test_init_from_a_directory_of_transformers(train, tmp_path):
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    with pytest.warns(UserWarning, match="New, with.*: pooled_dense/kernel"):
        sizes = "--hidden-dim 8 --intermediate-dim 12".split()
        results = train("--init-from", str(HUGGING_FACE), *sizes)
    task = models.MemoryBertMaskedLM.from_preset(str(tmp_path / "run" / "last"))
    with pytest.warns(UserWarning, match="New, with.*: pooled_dense/kernel"):
        theirs = models.from_transformers(
            HUGGING_FACE, task=keras_hub.models.MaskedLM
        )
    assert task.backbone.feedforward_activation == "gelu"
    assert theirs.backbone.feedforward_activation == "gelu"
    tokens = task.preprocessor.tokenizer.get_vocabulary()
    assert tokens == theirs.preprocessor.tokenizer.get_vocabulary()
    # A few steps change weights little.
    embeddings = (
        each.backbone.token_embedding.embeddings.numpy()
        for each in (task, theirs)
    )
    np.testing.assert_allclose(*embeddings, atol=0.02)
    assert results["stages"][0]["name"] == "+Init resm"


@pytest.mark.slow
def test_another_backbone(tiny_run, train, tmp_path, capsys):
    sizes = "--num-layers 1 --memory-layers 1".split()
    train("--backbone", "roberta", *sizes)
    run_dir = tmp_path / "run"
    task = keras_hub.models.MaskedLM.from_preset(str(run_dir / "best"))
    assert type(task) is models.MemoryRobertaMaskedLM
    tokenizer = load_tokenizer(str(run_dir / "tokenizer"))
    special = "<s> <pad> </s> <unk> <mask>"
    ids = [tokenizer.token_to_id(token) for token in special.split()]
    assert ids == [0, 1, 2, 3, 4]
    size = task.preprocessor.tokenizer.vocabulary_size()
    assert task.backbone.vocabulary_size == size <= 300
    assert task.predict(["bat hould"], verbose=0).shape[0] == 1
    # The other commands take the run.
    figures = tmp_path / "figures.json"
    args = f"--model {run_dir} --text {tiny_run.corpus} --limit 4"
    assert evaluate_mlm.main([*args.split(), "--out", str(figures)]) == 0
    assert json.loads(figures.read_text())["num_slots"] == 64
    args = f"--init-from {run_dir} --text {tiny_run.corpus}"
    assert main([*args.split(), "--out", str(tmp_path / "more")]) == 2
    assert "at most the model's 16, received 32" in capsys.readouterr().err
    train("--init-from", str(run_dir), *sizes, name="more")
    again = keras_hub.models.MaskedLM.from_preset(str(tmp_path / "more/last"))
    assert type(again) is type(task)


@pytest.mark.slow
def test_accumulation_is_the_larger_batch(train, tmp_path):
    """But for rounding, and for biases that have no true gradient."""
    variables = []
    for name, batch_size, accumulate in (("a", 8, 1), ("b", 4, 2)):
        train(
            *"--num-layers 1 --memory-layers 1 --steps 4".split(),
            *"--query-normalization layer --evaluate-every 4".split(),
            *["--batch-size", str(batch_size)],
            *["--accumulate", str(accumulate)],
            name=name,
        )
        task = keras_hub.models.MaskedLM.from_preset(
            str(tmp_path / name / "last")
        )
        variables.append(
            {
                weight.path: np.array(weight)
                for weight in task.weights
                if not weight.path.endswith(
                    ("/key/bias", "query_projection/bias")
                )
            }
        )
    whole, parts = variables
    assert len(whole) > 25
    for path, expected in whole.items():
        np.testing.assert_allclose(
            parts[path], expected, atol=1e-6, err_msg=path
        )
