import json
import pathlib

import keras_hub
import pytest

from keras_pkm import models
from keras_pkm.files.presets import save_preset
from tests.markdown import squeezed
from tests.models.tiny import tiny_masked_lm
from training.corpora.word_pieces import make_tokenizer
from training.corpora.word_pieces import train_vocabulary
from training.evaluate_mlm import main

TEXT = "The dog met a fox. Nobody knows why the fox met the dog."
HUGGING_FACE = (
    pathlib.Path(__file__).parents[1] / "converters" / "hugging_face" / "bert"
)


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory):
    """A pretraining run, as far as it matters."""
    root = tmp_path_factory.mktemp("run")
    (root / "recipe.json").write_text("{}")
    tokenizer = make_tokenizer(train_vocabulary([TEXT], 60, progress=False))
    task = tiny_masked_lm(vocabulary_size=tokenizer.vocabulary_size())
    preprocessor = keras_hub.models.BertMaskedLMPreprocessor(
        tokenizer, sequence_length=20
    )
    save_preset(task, preprocessor, root / "best")
    return root


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join([TEXT] * 5))
    return path


def run(model, text, tmp_path, flags=""):
    output = tmp_path / "out" / "results.json"
    args = f"--model {model} --text {text} --out {output} --batch-size 4"
    assert main([*args.split(), *flags.split()]) == 0
    return json.loads(output.read_text())


@pytest.mark.slow
def test_figures(run_directory, text, tmp_path, capsys):
    results = run(run_directory, text, tmp_path)
    assert results == run(run_directory, text, tmp_path)
    other = run(run_directory, text, tmp_path, "--seed 1")
    assert other["perplexity"] != results["perplexity"]
    assert results["sequences"] >= 5
    assert results["perplexity"] > 1 and results["standard_error"] > 0
    assert results["num_slots"] == 121
    assert set(results["memory_usage"]) == {"1", "3"}
    printed = squeezed(capsys.readouterr().out)
    assert f"| {text} | {results['perplexity']:.2f} |" in printed
    assert "| 3 | 121 |" in printed
    # The paper's, marked as such.
    assert "| +Init+ResM | 3.10 | 3.20 | 5.14 | 98.2/97.3 |" in printed
    assert "The paper's rows are its own" in printed


@pytest.mark.slow
def test_pseudo_perplexity(run_directory, text, tmp_path, capsys):
    results = run(run_directory, text, tmp_path, "--pseudo --limit 2")
    assert results["sequences"] == 2
    assert results["kind"] == "pseudo-perplexity"
    printed = squeezed(capsys.readouterr().out)
    assert "| text | pseudo-perplexity |" in printed
    masked = run(run_directory, text, tmp_path, "--limit 2")
    assert results["predicted_tokens"] > 3 * masked["predicted_tokens"]


def test_hugging_face(tmp_path, capsys):
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    path = tmp_path / "text.txt"
    path.write_text("a b c d e f g h i j k l m n o")
    with pytest.warns(UserWarning, match="New, with.*: pooled_dense/kernel"):
        results = run(HUGGING_FACE, path, tmp_path)
    assert results["memory_usage"] == {}
    assert "memory layer" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_model_of_the_hub_is_one_of_transformers(tmp_path, monkeypatch):
    """KerasHub would read it with another activation."""
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    hub = pytest.importorskip(
        "huggingface_hub", reason="huggingface_hub is not installed"
    )
    monkeypatch.setattr(
        hub, "hf_hub_download", lambda name, file: f"{HUGGING_FACE}/{file}"
    )
    monkeypatch.setattr(
        hub, "snapshot_download", lambda name, **_: str(HUGGING_FACE)
    )
    path = tmp_path / "text.txt"
    path.write_text("a b c d e f g h i j k l m n o")
    with pytest.warns(UserWarning, match="New, with.*: pooled_dense/kernel"):
        found = run("hf://somebody/bert", path, tmp_path)
        expected = run(HUGGING_FACE, path, tmp_path)
    assert found["perplexity"] == expected["perplexity"]


def test_models_without_the_head(run_directory, text, tmp_path, capsys):
    """keras-hub would measure a fresh one."""
    backbone = keras_hub.models.Backbone.from_preset(
        str(run_directory / "best")
    )
    classifier = models.MemoryBertTextClassifier(backbone, num_classes=2)
    save_preset(classifier, None, tmp_path / "classifier")
    backbone.save_to_preset(str(tmp_path / "backbone"))
    for name in ("classifier", "backbone"):
        args = ["--model", str(tmp_path / name), "--text", str(text)]
        assert main(args) == 2
        assert "has no masked-LM head" in capsys.readouterr().err
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    args = ["--model", f"{HUGGING_FACE}-bare", "--text", str(text)]
    assert main(args) == 2
    assert "has no masked-LM head" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--model nothing", "--model must be a run directory, a masked-LM"),
        ("--model gpt2_base_en", "can only be seen in a directory on this mac"),
        ("--text nothing", "the corpus file 'nothing' does not exist"),
        ("--sequence-length 99", "at most the model's 20, received 99"),
        ("--limit 0", "--limit must be at least 1, received 0"),
        ("--mask-rate 1", "below 1, received 1.0"),
        ("--batch-size 0", "--batch-size must be at least 1"),
        ("--pseudo --seed 3", "--seed would do nothing"),
    ],
)
def test_mistakes(run_directory, text, capsys, flags, message):
    args = ["--model", str(run_directory), "--text", str(text)]
    assert main([*args, *flags.split()]) == 2
    assert message in capsys.readouterr().err
