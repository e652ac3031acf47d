"""Exports of models whose memories share a table, or have tags."""

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from export.patch import main as patch_model
from export.saved_model import main as export_model
from keras_pkm.files.presets import save_preset
from keras_pkm.models import memories
from tests.export.conftest import randomize
from tests.kinds import KINDS
from tests.models.tiny import SIZES

TEXTS = tf.constant(["w1 w2 w3 w4", "w5 w6", "w2 w1"])


def make(kind, memory_layers, **options):
    plain = keras_hub.models.BertBackbone(**{**SIZES, "num_layers": 2})
    task = keras_hub.models.BertTextClassifier(
        plain, num_classes=3, dropout=0.0
    )
    return keras_pkm.models.add_memory(
        task, memory_layers, KINDS[kind](), "resm", **options
    )


def export(task, preprocessor, root, *flags):
    save_preset(task, preprocessor, root / "preset")
    arguments = ["--model", str(root / "preset"), "--what", "classifier"]
    out = root / "served"
    assert export_model([*arguments, "--out", str(out), *flags]) == 0
    return out


def scores(path):
    served = tf.saved_model.load(str(path))
    return served.signatures["serving_default"](TEXTS)["scores"].numpy()


@pytest.fixture
def preprocessor():
    names = [f"w{i}" for i in range(SIZES["vocabulary_size"] - 5)]
    tokenizer = keras_hub.models.BertTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *names]
    )
    return keras_hub.models.BertTextClassifierPreprocessor(
        tokenizer, sequence_length=8
    )


@pytest.mark.slow
def test_one_table_of_two_layers(preprocessor, tmp_path):
    task = make("gate", (1, 2), share_table=True)
    randomize(task)
    expected = tf.nn.softmax(task(preprocessor(TEXTS)))
    served = export(task, preprocessor, tmp_path / "whole")
    np.testing.assert_allclose(scores(served), expected, atol=1e-6)
    access = tf.saved_model.load(str(served)).signatures["memory_access"]
    found = access(TEXTS)
    slots = {name for name in found if name.startswith("slots")}
    assert slots == {"slots_1", "slots_2"}
    assert found["num_slots_1"] == found["num_slots_2"] == 256

    # Only slots that neither of them reads are left out. The first line is one
    # of those that show what they cost.
    text = tmp_path / "text.txt"
    text.write_text("w7 w8\nw1 w2 w3 w4\nw5 w6\nw2 w1\n")
    flags = ["--prune-unused", str(text)]
    smaller = export(task, preprocessor, tmp_path, *flags)
    np.testing.assert_allclose(scores(smaller), expected, atol=1e-6)
    assert "| 1 | 256 | 256 |" not in (smaller / "README.md").read_text()


@pytest.mark.slow
def test_a_patch_with_tags(preprocessor, tmp_path):
    # The second layer carries what was read to the token that is classified.
    task = make("gated n-grams with tags", (1,))
    features = preprocessor(TEXTS)
    before = export(task, preprocessor, tmp_path / "before")
    teacher = keras_pkm.teaching.MemoryTeacher(task, learning_rate=0.1)
    for memory in memories(task).values():
        memory.claim(features["token_ids"][1, 1:3].numpy())
    teacher.teach([(features, np.array([0, 1, 2]))], steps=3)
    teacher.make_patch().save(tmp_path / "patch.safetensors")
    after = export(task, preprocessor, tmp_path / "after")
    # Most tokens read nothing.
    access = tf.saved_model.load(str(after)).signatures["memory_access"](TEXTS)
    np.testing.assert_array_equal(
        access["is_token"], np.array(features["padding_mask"], bool)
    )

    out, back = tmp_path / "out", tmp_path / "back"
    file = str(tmp_path / "patch.safetensors")
    flags = ["--model", str(before), "--apply", file, "--out", str(out)]
    assert patch_model(flags) == 0
    np.testing.assert_array_equal(scores(out), scores(after))
    expected = tf.nn.softmax(task(features))
    np.testing.assert_allclose(scores(out), expected, atol=1e-6)
    changed = (scores(out) != scores(before)).any(1)
    assert changed.tolist() == [False, True, False]
    flags = ["--model", str(out), "--revert", file, "--out", str(back)]
    assert patch_model(flags) == 0
    np.testing.assert_array_equal(scores(back), scores(before))
