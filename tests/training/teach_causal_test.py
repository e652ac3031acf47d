"""`training/teach.py` on a causal model: facts, a text, and back."""

import json
import shutil

import keras
import keras_hub
import numpy as np
import pytest

from keras_pkm.files.presets import save_preset
from keras_pkm.models import add_memory
from keras_pkm.teaching import MemoryPatch
from keras_pkm.teaching import SlotImportance
from training.corpora.byte_pairs import train_byte_pairs
from training.loading.pretrained_model import load_language_model
from training.runs.run_directory import RunDirectory
from training.teach import main

TEXT = "The dog met a fox. Nobody knows why the fox met the dog. A cat ran."
FACTS = {"dog met": "a fox", "fox met": "the dog", "cat knows": "nobody"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A causal preset, whose weights are large enough to tell facts apart."""
    kind = keras_hub.models.GPT2Tokenizer
    tokenizer = train_byte_pairs([TEXT] * 3, 300, kind, progress=False)
    keras.utils.set_random_seed(0)
    plain = keras_hub.models.GPT2Backbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=16,
        dropout=0.0,
        max_sequence_length=24,
    )
    task = add_memory(
        keras_hub.models.GPT2CausalLM(plain),
        memory_layers=(1,),
        memory={
            "num_sub_keys": 16,
            "top_k": 4,
            "key_dim": 8,
            "values_initializer": "glorot_normal",
        },
    )
    for weight in task.weights:
        weight.assign_add(keras.random.normal(weight.shape, stddev=0.3))
    path = tmp_path_factory.mktemp("presets") / "causal"
    preprocessor = keras_hub.models.GPT2CausalLMPreprocessor(
        tokenizer, sequence_length=24
    )
    save_preset(task, preprocessor, path)
    return path


@pytest.fixture
def facts(tmp_path):
    path = tmp_path / "facts.tsv"
    lines = (f"{key.replace(' ', chr(9))}\t{FACTS[key]}\n" for key in FACTS)
    path.write_text("".join(lines))
    return path


@pytest.mark.slow
def test_facts_are_what_it_generates_and_can_be_taken_back(
    model, facts, tmp_path
):
    taught, back = tmp_path / "taught", tmp_path / "back"
    flags = f"--model {model} --facts {facts} --out {taught}"
    flags += " --method values --learning-rate 0.1"
    assert main(flags.split()) == 0
    new = json.loads((taught / "results.json").read_text())["new"]
    assert new["known_before"] == 0 and new["known_after"] == 1
    task = keras_hub.models.CausalLM.from_preset(str(taught / "last"))
    task.compile(sampler="greedy")
    for question, value in FACTS.items():
        text = task.generate(question, max_length=24)
        assert text.startswith(f"{question} {value}")
    patch = taught / "patch.safetensors"
    assert MemoryPatch.load(patch).num_rows > 0
    flags = f"--model {taught} --revert {patch} --out {back}"
    assert main(flags.split()) == 0
    before, after = (
        load_language_model(str(path))[0] for path in (model, back)
    )
    for old, new in zip(before.weights, after.weights, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.slow
def test_a_text_by_its_important_slots(model, tmp_path):
    text, background = tmp_path / "text.txt", tmp_path / "background.txt"
    text.write_text("A cat ran. " * 3)
    background.write_text("\n\n".join([TEXT] * 3))
    out = tmp_path / "out"
    flags = f"--model {model} --text {text} --keep {background} --fall 0.9"
    flags += f" --background {background} --slots 30 --learning-rate 0.3"
    # A batch of one sequence reads few of the slots.
    flags += f" --batch-size 1 --steps 20 --out {out}"
    assert main(flags.split()) == 0
    results = json.loads((out / "results.json").read_text())
    assert results["new"]["change"] < -0.1
    assert results["patch"]["rows"] > 0


@pytest.mark.slow
def test_what_cannot_be_taught(model, facts, tmp_path, capsys):
    out = tmp_path / "out"
    flags = f"--model {model} --facts {facts} --out {out}"
    assert main([*flags.split(), "--method", "head"]) == 2
    assert "pass another --method" in capsys.readouterr().err
    text = tmp_path / "text.txt"
    text.write_text("A cat ran. " * 3)
    flags = f"--model {model} --text {text} --mask-rate 0.2 --out {out}"
    assert main(flags.split()) == 2
    assert "--mask-rate would do nothing" in capsys.readouterr().err
    # A run, each batch of whose text has read all slots.
    run = RunDirectory(tmp_path / "run")
    shutil.copytree(model, run.best)
    (run.root / "recipe.json").write_text("{}")
    SlotImportance(5, {1: np.full(256, 5)}).save(run.document_frequencies)
    flags = f"--model {run.root} --facts {facts} --out {out}"
    assert main([*flags.split(), "--method", "slots"]) == 2
    error = capsys.readouterr().err
    assert "pass --method values" in error and "no slot" in error
    assert not out.exists()
