"""`training/teach.py` on a finished causal model: facts, and back."""

import json
import os
import pathlib

import keras
import keras_hub
import numpy as np
import pytest

from keras_pkm.files.presets import save_preset
from training.corpora.byte_pairs import train_byte_pairs
from training.runs.run_directory import RunDirectory
from training.teach import main

TEXT = (
    "? Jr.? .? Ann Lee lives in Rome. The home of Bob Ray is Oslo. Q: Where is "
    "the home of Ann? A: It is in Rome, (The) was of a The is has If you ask "
    "about"
)
PHRASINGS = (
    "home\t{subject} lives in\n\nhome\tThe home of {subject} is\n"
    "home\tQ: Where is {subject}?\\nA:\n"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The preset of a plain model."""
    kind = keras_hub.models.GPT2Tokenizer
    tokenizer = train_byte_pairs([TEXT] * 3, 330, kind, progress=False)
    keras.utils.set_random_seed(0)
    plain = keras_hub.models.GPT2Backbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        num_layers=3,
        num_heads=2,
        hidden_dim=64,
        intermediate_dim=64,
        dropout=0.0,
        # Shorter than the windows of text, and no multiple of 8.
        max_sequence_length=60,
    )
    for weight in plain.weights:
        if len(weight.shape) > 1:
            weight.assign_add(keras.random.normal(weight.shape, stddev=0.2))
    path = tmp_path_factory.mktemp("presets") / "plain"
    preprocessor = keras_hub.models.GPT2CausalLMPreprocessor(
        tokenizer, sequence_length=24
    )
    save_preset(keras_hub.models.GPT2CausalLM(plain), preprocessor, path)
    return path


@pytest.fixture
def files(tmp_path):
    """A fact a line, and how they are asked for."""
    (tmp_path / "facts.tsv").write_text(
        "Ann Lee\thome\tRome\nBob\thome\tOslo\n"
    )
    (tmp_path / "phrasings.tsv").write_text(PHRASINGS)
    return tmp_path


def load(path):
    run = RunDirectory(path)
    preset = str(run.last) if run.is_run else str(path)
    return keras_hub.models.CausalLM.from_preset(preset)


@pytest.mark.slow
def test_facts_are_generated_and_taken_back(model, files, capsys):
    taught, back = files / "taught", files / "back"
    asked = files / "asked.tsv"
    # It was taught, so that the model knows all of the answers.
    asked.write_text("home\t{subject} lives in\n")
    flags = f"--model {model} --facts {files}/facts.tsv --num-slots 500"
    flags += f" --phrasings {files}/phrasings.tsv --out {taught}"
    flags += f" --learning-rate 1 --steps 60 --measure --asked {asked}"
    assert main(flags.split()) == 0
    results = json.loads((taught / "results.json").read_text())
    edit = results["edit"]
    assert "two steps" in edit
    for kind in ("near", "far", "known"):
        assert edit[kind] == {"same": 1, "bits": 1}
    assert edit["text"]["divergence"] == 0
    assert edit["paraphrase"] == {"before": 0, "after": 1}
    assert results["new"]["known_after"] == 1 > results["new"]["known_before"]
    assert results["new"]["unknown"] == []
    printed = capsys.readouterr().out
    assert "--revert" in printed
    assert "two steps from a subject" in printed and "(KL 0.0000)" in printed
    assert "Teaching took" in printed

    task = load(taught)
    task.compile(sampler="greedy")
    for subject, value in (("Ann Lee", "Rome"), ("Bob", "Oslo")):
        text = f"{subject} lives in"
        assert task.generate(text, max_length=20).startswith(f"{text} {value}")

    # Bob does not stand in it.
    longer = np.array([task.preprocessor.tokenizer("Bobby lives in")])
    longer = {"token_ids": longer, "padding_mask": np.ones_like(longer)}
    assert (task(longer).numpy() == load(model)(longer).numpy()).all()

    flags = f"--model {taught} --facts {files}/facts.tsv --num-slots 9"
    assert main(f"{flags} --out {files}/more".split()) == 2
    assert "has its memory of facts" in capsys.readouterr().err
    flags = f"--compare-edits --model {taught} --out {files}/compared"
    assert main(flags.split()) == 2
    assert "model without a memory" in capsys.readouterr().err

    patch = RunDirectory(taught).patch
    flags = f"--model {taught} --revert {patch} --out {back}"
    assert main(flags.split()) == 0
    ids = np.array([[5, 6, 7]])
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    plain = load(model)
    assert (load(back)(inputs).numpy() == plain(inputs).numpy()).all()
    again = files / "again"
    assert main(f"--model {model} --apply {patch} --out {again}".split()) == 0
    weights = [each.numpy() for each in load(again).weights]
    assert all(
        (a == b.numpy()).all()
        for a, b in zip(weights, load(taught).weights, strict=True)
    )


@pytest.mark.parametrize(
    ("facts", "phrasings", "flags", "message"),
    [
        ("a\tb\n", "", "", "facts.tsv, line 1"),
        ("a\tb\tc\na\tb\td\n", "", "", "facts.tsv, line 2"),
        ("a\tb\tc\n", "b\n", "", "phrasings.tsv, line 1: a line must have two"),
        ("a\tb\tc\n", "B\t{subject} a\n", "", "'B' for 'b'"),
        ("a\tb\tc\n", "\nb\tof it\n", "", "phrasings.tsv, line 2: a phrasing"),
        ("a\tb\tc\n", "d\t{subject} d", "", "such as 'b', received those of"),
        (
            "a\tb\tc\n",
            'b\t"{subject} is',
            "",
            "a cell that begins with a quote",
        ),
        ("a\tb\tc\n", "", "--keep x.txt", "--keep would do nothing"),
        ("a\tb\tc\n", "", "--asked x.tsv", "--asked needs --measure"),
        ("a\tb\tc\n", "", "--measure --asked x.tsv", "x.tsv"),
        (
            "a Jr.\thome\tc\n",
            "home\t{subject} is",
            "--measure --asked {path}/asked.tsv",
            "facts.tsv, line 1: Tokens must not contain both",
        ),
        (
            "a\tb\tc\n",
            "b\tof {subject}\n",
            "",
            "facts.tsv, line 1: A phrasing must go on behind",
        ),
        (
            f"a\tb\tc\n{'a ' * 40}\tb\tc\n",
            "",
            "",
            "facts.tsv, line 2: A subject must have as many tokens",
        ),
        ("a\tb\tc\n", "", "--rule sgd", "--rule would do nothing"),
        ("a\tb\tc\n", "", "--slots 9", "--slots would do nothing"),
        ("a\tb\tc\n", "", "--batch-size 9", "--batch-size would do nothing"),
        ("a\tb\tc\n", "", "--memory-layer 9", "memory_layers"),
        ("a\tb\tc\n", "", "--num-slots 64", "num_slots"),
    ],
)
def test_mistakes(facts, phrasings, flags, message, model, tmp_path, capsys):
    (tmp_path / "facts.tsv").write_text(facts)
    (tmp_path / "asked.tsv").write_text("home\tWho knows {subject}?\\nA:")
    flags = flags.replace("{path}", str(tmp_path))
    command = f"--model {model} --facts {tmp_path}/facts.tsv {flags}"
    command += f" --out {tmp_path}/taught"
    if phrasings:
        (tmp_path / "phrasings.tsv").write_text(phrasings)
        command += f" --phrasings {tmp_path}/phrasings.tsv"
    assert main(command.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert not (tmp_path / "taught").exists()


@pytest.mark.slow
def test_a_real_model(tmp_path, capsys):
    """A directory of transformers, in minutes."""
    folder = os.environ.get("KERAS_PKM_MODELS")
    if not folder:
        pytest.skip("KERAS_PKM_MODELS does not name a folder of real models")
    model = pathlib.Path(folder) / "smollm2-135m"
    (tmp_path / "facts.tsv").write_text("Alda Kolvig\tbirthplace\tLisbon\n")
    flags = f"--model {model} --facts {tmp_path}/facts.tsv"
    # KerasHub's tokenizer parts them in another way.
    spaces = tmp_path / "spaces.tsv"
    spaces.write_text("birthplace\tBorn:  {subject} in\n")
    mistaken = f"{flags} --phrasings {spaces} --out {tmp_path}/mistaken"
    assert main(mistaken.split()) == 2
    assert "facts.tsv, line 1: texts must have the same tokens" in (
        capsys.readouterr().err
    )
    mistaken = f"{flags} --measure --asked {spaces} --out {tmp_path}/mistaken"
    assert main(mistaken.split()) == 2
    assert "facts.tsv, line 1: texts must have the same tokens" in (
        capsys.readouterr().err
    )
    assert main(f"{flags} --out {tmp_path}/taught".split()) == 0
    task = load(tmp_path / "taught")
    task.compile(sampler="greedy")
    text = "The birthplace of Alda Kolvig is"
    assert "Lisbon" in task.generate(text, max_length=16)
