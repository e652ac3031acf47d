"""A kind of memory that the package does not know does all that ours do."""

import inspect
import json

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from export.saved_model import main as export_model
from keras_pkm.layers.memories import memories
from keras_pkm.layers.memories import tables
from keras_pkm.optimizers import PKMAdam
from keras_pkm.runs.presets import save_preset
from tests.any_backbone import random_memory
from tests.any_backbone.random_memory import RandomMemory
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_plain
from tests.any_backbone.tiny_families import outputs_of
from tests.models.tiny import SIZES


def gpt2():
    task = keras_hub.models.GPT2CausalLM(make_plain("GPT2"))
    model = keras_pkm.models.add_memory(task, (2,), RandomMemory())
    inputs = inputs_of(model.backbone)
    return model, inputs, inputs["token_ids"]


def bert():
    plain = keras_hub.models.BertTextClassifier(
        keras_hub.models.BertBackbone(**SIZES), num_classes=3
    )
    model = keras_pkm.models.add_memory(plain, (2,), RandomMemory(), "resm")
    return model, inputs_of(model.backbone), np.array([0, 2])


@pytest.fixture(params=[gpt2, pytest.param(bert, marks=pytest.mark.slow)])
def trained(request):
    model, inputs, labels = request.param()
    model.compile(
        PKMAdam(1e-3, 0.1),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[],
    )
    before = model.get_weights()
    fitted = model.fit(inputs, labels, epochs=5, shuffle=False, verbose=0)
    losses = fitted.history["loss"]
    assert losses[-1] < losses[0]
    for old, weight in zip(before, model.weights, strict=True):
        if weight.name == "directions":
            np.testing.assert_array_equal(weight, old)
    return model, inputs, labels


def test_an_outsider_needs_forty_lines():
    assert len(inspect.getsource(random_memory.RandomMemory).split("\n")) <= 40


def test_trained_measured_and_frozen(trained):
    model, inputs, labels = trained
    (number,) = memories(model)
    assert isinstance(memories(model)[number], RandomMemory)
    usage = keras_pkm.models.MemoryProbe(model).measure(inputs)
    assert 0 < usage[number]["top1_reads"]
    monitor = keras_pkm.callbacks.MemoryUsageMonitor(inputs)
    model.fit(inputs, labels, shuffle=False, verbose=0, callbacks=[monitor])
    assert monitor.usage.keys() == {number}

    (table,) = tables(model).values()
    (read,) = keras_pkm.models.MemoryProbe(model).count_each([(inputs,)])
    before = table.values.numpy()
    model.fit(inputs, labels, shuffle=False, verbose=0)
    changed = (table.values.numpy() != before).any(axis=1)
    np.testing.assert_array_equal(changed, read[number]["reads"] > 0)
    assert not changed.all()

    keras_pkm.models.freeze_memory(model)
    assert not table.values.trainable
    with pytest.raises(ValueError, match="must be among 'values'. .*'keys'"):
        keras_pkm.models.freeze_memory(model, ["keys"])
    keras_pkm.models.freeze_except_memory(model)
    assert [each.path for each in model.trainable_variables] == [
        table.values.path
    ]


def test_taught_patched_and_reverted(trained, tmp_path):
    model, inputs, labels = trained
    before = model.get_weights()
    teacher = keras_pkm.teaching.MemoryTeacher(model, learning_rate=0.1)
    assert teacher.teach([(inputs, labels)], steps=3) == 3
    patch = teacher.make_patch()
    after = model.get_weights()
    patch.save(tmp_path / "patch.safetensors")
    patch.revert(model)
    for old, weight in zip(before, model.weights, strict=True):
        np.testing.assert_array_equal(weight, old)
    keras_pkm.teaching.MemoryPatch.load(tmp_path / "patch.safetensors").apply(
        model
    )
    for new, weight in zip(after, model.weights, strict=True):
        np.testing.assert_array_equal(weight, new)


def test_saved(trained, tmp_path):
    model, inputs, _ = trained
    expected = outputs_of(model, inputs)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(str(tmp_path / "preset"))
    kind = keras_hub.models.CausalLM
    if not isinstance(model, kind):
        kind = keras_hub.models.TextClassifier
    for loaded in (
        keras.models.load_model(tmp_path / "model.keras"),
        kind.from_preset(str(tmp_path / "preset")),
    ):
        assert type(loaded) is type(model)
        assert isinstance(next(iter(memories(loaded).values())), RandomMemory)
        for a, b in zip(outputs_of(loaded, inputs), expected):
            np.testing.assert_array_equal(a, b)
    json.dumps(model.backbone.get_config())


def test_exported(tmp_path):
    model, inputs, _ = bert()
    for weight in model.weights:
        weight.assign_add(keras.random.normal(weight.shape, stddev=0.2))
    words = [f"w{i}" for i in range(SIZES["vocabulary_size"] - 5)]
    tokenizer = keras_hub.models.BertTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    )
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        tokenizer, sequence_length=8
    )
    save_preset(model, preprocessor, tmp_path / "preset")
    arguments = ["--model", str(tmp_path / "preset"), "--what", "classifier"]
    out = str(tmp_path / "served")
    assert export_model([*arguments, "--out", out]) == 0
    text = tf.constant(["w1 w2 w3", "w4"])
    expected = tf.nn.softmax(model(preprocessor(text)))
    served = tf.saved_model.load(out)
    actual = served.signatures["serving_default"](text)
    np.testing.assert_allclose(actual["scores"], expected, atol=1e-6)
    access = served.signatures["memory_access"]
    assert "slots_2" in access.structured_outputs
