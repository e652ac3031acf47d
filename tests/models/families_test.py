"""What holds for the backbones and tasks of all families."""

import inspect

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from keras_pkm.models import copy_matching_weights
from keras_pkm.models.families import task_class
from keras_pkm.optimizers import PKMAdam
from tests.contracts import check_config_round_trip
from tests.contracts import fresh_rng
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import SIZES
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_backbone

families = pytest.mark.parametrize(
    "family",
    ["Bert", pytest.param("DistilBert", marks=pytest.mark.slow), "Roberta"],
)


def ours(family, kind="Backbone"):
    return getattr(keras_pkm.models, f"Memory{family}{kind}")


def plain(family, kind="Backbone"):
    return getattr(keras_hub.models, f"{family}{kind}")


def with_memory(family, **kwargs):
    return tiny_backbone(plain_cls=plain(family), **kwargs)


def batch_for(backbone):
    """Features, labels and weights of a masked-LM task."""
    x, labels, weights = masked_batch(fresh_rng())
    names = {*backbone.input, "mask_positions"}
    return {name: x[name] for name in names}, labels, weights


def features_for(backbone):
    x, _, _ = batch_for(backbone)
    return {name: x[name] for name in backbone.input}


def assert_same(actual, expected):
    keras.tree.map_structure(np.testing.assert_array_equal, actual, expected)


@families
def test_without_memory_equals_keras_hub_s(family):
    theirs = plain(family)(**SIZES)
    copy = with_memory(family, memory_layers=())
    report = copy_matching_weights(theirs, copy)
    assert not report.new and not report.left_over
    assert copy.input.keys() == theirs.input.keys()
    x = features_for(copy)
    for training in (False, True):
        assert_same(copy(x, training=training), theirs(x, training=training))


@families
@pytest.mark.parametrize("activation", ["gelu", "gelu_approximate"])
def test_activation(family, activation):
    backbone = with_memory(family, feedforward_activation=activation)
    for layer in backbone.transformer_layers:
        x = np.linspace(-3, 3, 7, dtype="float32")
        expected = keras.activations.gelu(
            x, approximate=activation == "gelu_approximate"
        )
        assert_same(layer.activation(x), expected)
        dense = layer._feedforward_intermediate_dense
        assert_same(dense.activation(x), expected)
    check_config_round_trip(backbone)


@families
def test_wrong_activation(family):
    with pytest.raises(ValueError, match="_activation` must be .*gelu.*relu"):
        with_memory(family, feedforward_activation="relu")


@families
def test_clone_and_signature(family):
    backbone = with_memory(family)
    # Keras makes a plain functional model of it, as of keras-hub's.
    copy = keras.models.clone_model(backbone)
    copy.set_weights(backbone.get_weights())
    x = features_for(backbone)
    assert_same(copy(x), backbone(x))
    arguments = inspect.signature(ours(family)).parameters
    assert {"backbone", "memory_layers", "memory_block"} <= set(arguments)
    assert "args" not in arguments


def memory_tables(task):
    return [
        layer.memory.table.values.numpy()
        for layer in task.backbone.transformer_layers
        if getattr(layer, "memory", None) is not None
    ]


@pytest.mark.parametrize(
    "family, eager",
    [
        ("Roberta", True),
        pytest.param("Bert", False, marks=pytest.mark.slow),
        pytest.param("DistilBert", True, marks=pytest.mark.slow),
    ],
)
def test_masked_lm(family, eager, tmp_path):
    """Trains, and comes back through keras-hub's own entry point."""
    backbone = with_memory(family, num_layers=2, memory_layers=(1, 2))
    task = ours(family, "MaskedLM")(backbone)
    x, labels, weights = batch_for(task.backbone)
    if family == "Bert":
        task.backbone.pooled_dense.trainable = False
    before = memory_tables(task)
    task.compile(PKMAdam(1e-3, 1e-2), run_eagerly=eager)
    task.fit(x, labels, sample_weight=weights, shuffle=False, verbose=0)
    assert len(before) == 2
    for old, new in zip(before, memory_tables(task)):
        assert not np.array_equal(old, new)
    task.save_to_preset(str(tmp_path))
    copy = keras_hub.models.MaskedLM.from_preset(str(tmp_path))
    assert isinstance(copy, ours(family, "MaskedLM"))
    assert_same(copy(x), task(x))


@pytest.mark.parametrize(
    "family, eager",
    [
        ("Bert", True),
        pytest.param("Roberta", False, marks=pytest.mark.slow),
        pytest.param("DistilBert", True, marks=pytest.mark.slow),
    ],
)
def test_text_classifier(family, eager, tmp_path):
    backbone = with_memory(family, **ONE_LAYER)
    task = ours(family, "TextClassifier")(backbone, num_classes=3)
    x = features_for(task.backbone)
    labels = fresh_rng().integers(0, 3, 8)
    task.compile(PKMAdam(), run_eagerly=eager)
    task.fit(x, labels, shuffle=False, verbose=0)
    task.save_to_preset(str(tmp_path))
    copy = keras_hub.models.TextClassifier.from_preset(str(tmp_path))
    assert isinstance(copy, ours(family, "TextClassifier"))
    assert_same(copy(x), task(x))


def question_answerer(family, **kwargs):
    """A task with features and labels, one of them for each example."""
    task = ours(family, "QuestionAnswerer")(with_memory(family, **kwargs))
    if family == "Bert":
        task.backbone.pooled_dense.trainable = False
    labels = {"start": np.arange(8) % 4, "end": np.arange(8) % 4 + 1}
    return task, features_for(task.backbone), labels


@pytest.mark.slow
def test_question_answerer_learns_where_to_look():
    """(`training/finetuning/squad_test.py` trains a BERT.)"""
    task, x, labels = question_answerer(
        "Roberta", dtype="mixed_bfloat16", **ONE_LAYER
    )
    task.compile(PKMAdam(1e-2, 1e-2))
    data = tf.data.Dataset.from_tensors((x, labels))
    task.fit(data.repeat(30), shuffle=False, verbose=0)
    task.run_eagerly = True
    logs = task.evaluate(x, labels, return_dict=True, verbose=0)
    assert logs["start_sparse_categorical_accuracy"] > 0.8


@pytest.mark.slow
@families
def test_question_answerer(family, tmp_path):
    """Trains, and comes back through its own entry point.

    (`..._learns_where_to_look` trains in graphs.)
    """
    policy = "mixed_bfloat16"
    task, x, labels = question_answerer(family, dtype=policy)
    before = memory_tables(task)
    task.compile(PKMAdam(1e-2, 1e-2), run_eagerly=True)
    task.fit(x, labels, shuffle=False, verbose=0)
    assert len(before) == 2
    for old, new in zip(before, memory_tables(task)):
        assert not np.array_equal(old, new)
    outputs = task(x)
    assert {name: (o.shape, o.dtype) for name, o in outputs.items()} == {
        name: ((8, 12), "float32") for name in ("start", "end")
    }
    task.save_to_preset(str(tmp_path))
    copy = keras_pkm.models.QuestionAnswerer.from_preset(
        str(tmp_path), dtype=policy
    )
    assert type(copy) is type(task)
    assert_same(copy(x), outputs)


@pytest.mark.slow
@families
def test_question_answerer_on_keras_hub_s_backbone(family):
    backbone = plain(family)(**SIZES)
    task = keras_pkm.models.QuestionAnswerer(backbone)
    x = features_for(backbone)
    outputs = task(x)
    hidden = backbone(x)
    if family == "Bert":
        hidden = hidden["sequence_output"]
    logits = hidden @ task.span_dense.kernel + task.span_dense.bias
    np.testing.assert_allclose(outputs["start"], logits[..., 0], atol=1e-6)
    np.testing.assert_allclose(outputs["end"], logits[..., 1], atol=1e-6)
    labels = {"start": np.zeros(8, int), "end": np.ones(8, int)}
    logs = task.evaluate(x, labels, return_dict=True, verbose=0)
    expected = (logs["start_loss"] + logs["end_loss"]) / 2
    np.testing.assert_allclose(logs["loss"], expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["Task", "MaskedLM", "BertMaskedLM"])
def test_keras_hub_lists_its_presets(kind):
    """Neither of a plain class and ours is below the other for its lists."""
    plain = getattr(keras_hub.models, kind)
    assert "bert_base_en" in plain.presets
    assert not task_class(keras_hub.models.BertMaskedLM).presets
