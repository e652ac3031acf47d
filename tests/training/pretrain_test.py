"""The command: what it refuses, and a tiny run from text to model."""

import csv
import json
from pathlib import Path

import keras_hub
import numpy as np
import pytest

from keras_pkm import models
from tests.training.tiny_run import TINY
from tests.training.tiny_run import run
from tests.training.tiny_run import write_corpus
from training import evaluate_mlm
from training.loading.pretrained_model import load_tokenizer
from training.pretrain import main
from training.pretraining.recipe import RECIPES
from training.pretraining.recipe_check import check_recipe

ROOT = Path(__file__).parents[2]
HUGGING_FACE = ROOT / "tests" / "models" / "hugging_face" / "bert"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "text.txt")


@pytest.fixture(scope="module")
def finished_run(corpus, tmp_path_factory):
    """A run of both stages on two devices in mixed precision."""
    run_dir = tmp_path_factory.mktemp("runs") / "run"
    result = run(
        "--strategy",
        "mirrored",
        "--corpus",
        corpus,
        "--run-dir",
        str(run_dir),
        *TINY,
    )
    assert result.returncode == 0, result.stderr
    return run_dir, result


def test_prints_what_the_memory_brought(finished_run):
    run_dir, result = finished_run
    assert "2 device(s), mixed_bfloat16" in result.stdout
    assert "right after adding it (resm)" in result.stdout
    assert "PKMAdam: 1 variables, 1,024 parameters: memory" in result.stderr
    table = (run_dir / "results.md").read_text()
    assert table in result.stdout
    for row in (
        "unigram",
        "plain",
        "+Init resm, before training",
        "+Init resm",
    ):
        assert f"| {row} |" in table
    results = json.loads((run_dir / "results.json").read_text())
    assert [stage["name"] for stage in results["stages"]] == [
        "plain",
        "+Init resm",
    ]
    with np.load(run_dir / "held_out_losses.npz") as file:
        mean = file["nll"].sum() / file["tokens"].sum()
    last = results["stages"][1]
    assert last["perplexity"] == pytest.approx(np.exp(mean))
    with open(run_dir / "logs" / "resm.csv") as file:
        *_, watched = csv.DictReader(file)
    # In bfloat16, in two ways.
    watched = float(watched["val_perplexity"])
    assert last["perplexity"] == pytest.approx(watched, rel=1e-2)
    usage = last["memory_usage"]["2"]
    assert 0 < usage["top1_mu"] <= usage["mu"] <= 1
    with open(run_dir / "logs" / "resm-memory.csv") as file:
        *_, watched = csv.DictReader(file)
    # While it trains, a part of the held-out text is read; at its end, all.
    assert usage["top1_reads"] > int(watched["top1_reads"]) > 0


def test_the_run_directory_is_enough(finished_run):
    run_dir, _ = finished_run
    recipe = json.loads((run_dir / "recipe.json").read_text())
    assert recipe["recipe"] == "laptop" and recipe["steps"] == 4
    vocabulary = load_tokenizer(str(run_dir / "tokenizer")).get_vocabulary()
    assert vocabulary[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for name in ("best", "last", "plain"):
        task = keras_hub.models.MaskedLM.from_preset(str(run_dir / name))
        assert task.predict(["bat hould"], verbose=0).shape[0] == 1
        tokenizer = task.preprocessor.tokenizer
        assert tokenizer.get_vocabulary() == vocabulary
    with open(run_dir / "logs" / "resm.csv") as file:
        rows = list(csv.DictReader(file))
    assert "val_perplexity" in rows[-1] and "memory_2_top1_mu" in rows[-1]
    assert list((run_dir / "logs" / "plain").rglob("events*"))
    assert not list(run_dir.rglob("*.partial"))


@pytest.mark.parametrize("source", ["run", "preset"])
def test_init_from(finished_run, corpus, tmp_path, source):
    run_dir, _ = finished_run
    result = run(
        "--init-from",
        str(run_dir if source == "run" else run_dir / "plain"),
        "--corpus",
        corpus,
        "--run-dir",
        str(tmp_path / "run"),
        *TINY,
    )
    assert result.returncode == 0, result.stderr
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    (stage,) = results["stages"]
    assert stage["name"] == "+Init resm"
    old = json.loads((run_dir / "results.json").read_text())["stages"]
    expected = old[1 if source == "run" else 0]["perplexity"]
    # ResM starts next to the model that it continues.
    assert stage["perplexity_before"] == pytest.approx(expected, rel=0.02)


def test_init_from_a_directory_of_transformers(corpus, tmp_path):
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    args = ["--init-from", str(HUGGING_FACE), "--corpus", corpus, *TINY]
    assert main([*args, "--run-dir", str(tmp_path / "run")]) == 0
    task = models.PKMBertMaskedLM.from_preset(str(tmp_path / "run" / "last"))
    theirs = models.PKMBertMaskedLM.from_preset(str(HUGGING_FACE))
    assert task.backbone.activation == theirs.backbone.activation == "gelu"
    tokens = task.preprocessor.tokenizer.get_vocabulary()
    assert tokens == theirs.preprocessor.tokenizer.get_vocabulary()
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["stages"][0]["name"] == "+Init resm"


@pytest.mark.parametrize(
    ("backbone", "classes", "special"),
    [
        ("distilbert", "PKMDistilBert", "[PAD] [UNK] [CLS] [SEP] [MASK]"),
        ("roberta", "PKMRoberta", "<s> <pad> </s> <unk> <mask>"),
    ],
)
def test_backbones(corpus, tmp_path, capsys, backbone, classes, special):
    run_dir = tmp_path / "run"
    args = f"--backbone {backbone} --corpus {corpus} --run-dir {run_dir}"
    assert main([*args.split(), *TINY]) == 0
    task = keras_hub.models.MaskedLM.from_preset(str(run_dir / "best"))
    assert type(task) is getattr(models, f"{classes}MaskedLM")
    tokenizer = load_tokenizer(str(run_dir / "tokenizer"))
    ids = [tokenizer.token_to_id(token) for token in special.split()]
    assert ids == [0, 1, 2, 3, 4]
    size = task.preprocessor.tokenizer.vocabulary_size()
    assert task.backbone.vocabulary_size == size <= 300
    assert task.predict(["bat hould"], verbose=0).shape[0] == 1
    # The other commands take the run.
    figures = tmp_path / "figures.json"
    args = f"--model {run_dir} --text {corpus} --limit 4 --output {figures}"
    assert evaluate_mlm.main(args.split()) == 0
    assert json.loads(figures.read_text())["num_slots"] == 64
    args = f"--init-from {run_dir} --corpus {corpus}"
    more = ["--run-dir", str(tmp_path / "more")]
    assert main([*args.split(), *more]) == 2
    assert "at most the model's 16, received 32" in capsys.readouterr().err
    assert main([*args.split(), *more, *TINY]) == 0
    again = keras_hub.models.MaskedLM.from_preset(str(tmp_path / "more/last"))
    assert type(again) is type(task)


def test_the_same_seed_gives_the_same_run(corpus, tmp_path):
    args = ["--corpus", corpus, *TINY, "--plain-steps", "0"]
    perplexities = []
    for name in ("a", "b"):
        result = run(*args, "--run-dir", str(tmp_path / name))
        assert result.returncode == 0, result.stderr
        text = (tmp_path / name / "results.json").read_text()
        (stage,) = json.loads(text)["stages"]
        perplexities.append(stage["perplexity"])
    assert perplexities[0] == perplexities[1]


@pytest.fixture
def refused(tmp_path, capsys):
    """Runs a command that must fail, here, and returns its one line."""

    def refused(*args):
        run_dir = tmp_path / "run"
        assert main(["--run-dir", str(run_dir), *args]) == 2
        assert not run_dir.exists()
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")
        return line

    return refused


@pytest.mark.parametrize(
    "args, words",
    [
        ("--memory-layers 5", ["memory_layers=(5,)", "num_layers=3"]),
        ("--memory-key-dim 7", ["`key_dim` must be even", "key_dim=7"]),
        ("--memory-top-k 99", ["`top_k`", "top_k=99", "num_sub_keys="]),
        ("--memory-layers", ["--memory-layers", "--memory-block ffn"]),
        (
            "--strategy mirrored --batch-size 7",
            ["--batch-size", "7", "2 devices"],
        ),
        ("--devices 2", ["--devices", "--strategy mirrored"]),
        ("--steps 0", ["--steps must be at least 1, received 0"]),
        ("--steps 10 --evaluate-every 4", ["--evaluate-every", "divisor"]),
        ("--mask-rate 1.5", ["--mask-rate", "1.5"]),
        ("--corpus /nowhere/x.txt", ["/nowhere/x.txt"]),
        ("--vocabulary /nowhere/v.txt", ["/nowhere/v.txt"]),
        ("--init-from /nowhere", ["--init-from", "/nowhere"]),
        ("--held-out 1", ["held-out"]),
    ],
)
def test_refuses_the_impossible(args, words, refused):
    line = refused(*args.split())
    for word in words:
        assert word in line


def test_refuses_bad_files(tmp_path, corpus, refused):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    assert str(empty) in refused("--corpus", str(empty))
    noise = tmp_path / "noise.bin"
    noise.write_bytes(bytes(range(256)) * 50)
    assert str(noise) in refused("--corpus", str(noise))
    vocabulary = tmp_path / "vocabulary.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nword\n")
    line = refused("--corpus", corpus, "--vocabulary", str(vocabulary))
    assert "[MASK]" in line and str(vocabulary) in line


def test_refuses_a_vocabulary_that_is_shorter_than_the_model_s(
    finished_run, tmp_path, corpus, refused
):
    run_dir, _ = finished_run
    vocabulary = load_tokenizer(str(run_dir / "tokenizer")).get_vocabulary()
    vocabulary = vocabulary[:-5]
    path = tmp_path / "short.txt"
    path.write_text("\n".join(vocabulary))
    args = ["--init-from", str(run_dir), "--vocabulary", str(path)]
    args += ["--sequence-length", "16"]
    line = refused(*args, "--corpus", corpus)
    assert "--vocabulary" in line and f"{len(vocabulary):,}" in line


def test_refuses_a_run_directory_that_holds_a_finished_run(finished_run):
    run_dir, _ = finished_run
    before = {path: path.stat().st_mtime_ns for path in run_dir.rglob("*")}
    result = run("--run-dir", str(run_dir), *TINY)
    assert result.returncode == 2
    assert f"'{run_dir}' holds a finished run" in result.stderr
    after = {path: path.stat().st_mtime_ns for path in run_dir.rglob("*")}
    assert before == after


def test_refuses_a_corpus_without_a_held_out_part(tmp_path, refused):
    text = tmp_path / "one.txt"
    text.write_text("One document only.")
    line = refused("--corpus", str(text))
    assert "held out" in line and "--validation" in line


def test_a_refusal_is_one_line_without_traceback(tmp_path):
    result = run("--memory-layers", "9", "--run-dir", str(tmp_path / "run"))
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in result.stderr


def test_help_names_the_sections():
    result = run("--help")
    assert result.returncode == 0
    for words in ("--memory-block", "section 3.2", "section 4.1", "+Init"):
        assert words in result.stdout


def test_recipes_are_possible():
    assert set(RECIPES) == {
        "laptop",
        "paper-base",
        "paper-large",
        "paper-distilbert",
    }
    for recipe in RECIPES.values():
        check_recipe(recipe)
    base = RECIPES["paper-base"]
    assert (base.steps, base.plain_steps, base.batch_size) == (
        500_000,
        500_000,
        1024,
    )
    assert base.memory_config()["num_sub_keys"] ** 2 == 262_144


def test_accumulation_is_the_larger_batch(corpus, tmp_path):
    """But for rounding, and for biases that have no true gradient."""
    flags = "--plain-steps 0 --query-normalization layer --steps 5".split()
    variables = []
    for name, batch_size, accumulate in (("a", 8, 1), ("b", 2, 4)):
        result = run(
            *["--corpus", corpus, "--run-dir", str(tmp_path / name), *TINY],
            *[*flags, "--batch-size", str(batch_size)],
            *["--accumulate", str(accumulate)],
        )
        assert result.returncode == 0, result.stderr
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
    assert len(whole) > 40
    for path, expected in whole.items():
        np.testing.assert_allclose(
            parts[path], expected, atol=1e-6, err_msg=path
        )
