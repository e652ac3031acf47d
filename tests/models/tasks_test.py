import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.models import MemoryBertMaskedLM
from keras_pkm.models import MemoryBertTextClassifier
from keras_pkm.models import MemoryProbe
from keras_pkm.models import QuestionAnswerer
from keras_pkm.models import add_memory
from keras_pkm.models import copy_matching_weights
from keras_pkm.optimizers import PKMAdam
from keras_pkm.trainers.task_training import TaskTraining
from tests.contracts import fixed_rng
from tests.contracts import fresh_rng
from tests.models.tiny import MEMORY
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import SIZES
from tests.models.tiny import features
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_backbone
from tests.models.tiny import tiny_masked_lm

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [
    f"w{i}" for i in range(95)
]


@pytest.mark.slow
def test_masked_lm_preset(tmp_path):
    """Through keras-hub's own entry point, without warning.

    (`families_test.py` has the same after training.)
    """
    rng = fresh_rng()
    task = tiny_masked_lm(**ONE_LAYER)
    x, *_ = masked_batch(rng)
    task.preprocessor = keras_hub.models.BertMaskedLMPreprocessor(
        keras_hub.models.BertTokenizer(VOCABULARY), sequence_length=12
    )
    task.save_to_preset(str(tmp_path))

    copy = keras_hub.models.MaskedLM.from_preset(str(tmp_path))
    assert isinstance(copy, MemoryBertMaskedLM)
    np.testing.assert_array_equal(copy(x), task(x))
    assert copy.predict(["w1 w2 w3"], verbose=0).shape[-1] == 100
    # A task with a head of its own takes the backbone.
    classifier = keras_hub.models.TextClassifier.from_preset(
        str(tmp_path), num_classes=2
    )
    assert isinstance(classifier, MemoryBertTextClassifier)
    np.testing.assert_array_equal(
        classifier.backbone(features(rng))["pooled_output"].shape, (8, 16)
    )


def test_memories_are_added_to_plain_tasks_of_ours():
    x, *_ = masked_batch(fresh_rng())
    plain = tiny_masked_lm(memory_layers=())
    task = add_memory(plain, (2,), MEMORY, "resm")
    assert type(task) is type(plain) is MemoryBertMaskedLM
    assert list(task.backbone.memory_outputs) == [2]
    np.testing.assert_array_equal(task(x), plain(x))
    # A task for any backbone is one for those with memories.
    x.pop("mask_positions")
    answerer = QuestionAnswerer(keras_hub.models.BertBackbone(**SIZES))
    task = add_memory(answerer, (1, 2), MEMORY)
    assert type(task) is QuestionAnswerer
    assert list(task.backbone.memory_outputs) == [1, 2]
    np.testing.assert_array_equal(task(x)["start"], answerer(x)["start"])


@pytest.mark.slow
def test_train_step_is_traced_once(monkeypatch):
    """A step that creates the optimizer's variables would be traced again."""
    traces = []
    train_step = TaskTraining.train_step
    monkeypatch.setattr(
        TaskTraining,
        "train_step",
        lambda self, data: traces.append(1) or train_step(self, data),
    )
    task = tiny_masked_lm(**ONE_LAYER)
    x, labels, weights = masked_batch(fresh_rng())
    task.backbone.pooled_dense.trainable = False
    task.compile(PKMAdam(), metrics=[], weighted_metrics=[])
    task.fit(
        x, labels, sample_weight=weights, epochs=2, shuffle=False, verbose=0
    )
    assert len(traces) == 1


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_preset_of_a_task_in_mixed_precision(policy, tmp_path):
    """keras-hub cannot load presets that name a mixed policy."""
    task = tiny_masked_lm(dtype=policy, **ONE_LAYER)
    task.save_to_preset(str(tmp_path))
    copy = keras_hub.models.MaskedLM.from_preset(str(tmp_path))
    assert copy.backbone.dtype_policy.name == "float32"
    again = keras_hub.models.MaskedLM.from_preset(str(tmp_path), dtype=policy)
    assert again.backbone.dtype_policy.name == policy
    for old, new in zip(task.weights, copy.weights):
        np.testing.assert_array_equal(old, new)
    x, *_ = masked_batch(fresh_rng())
    # Eager calls of keras-hub's masked-LM head fail in mixed precision.
    np.testing.assert_array_equal(
        again.predict(x, verbose=0), task.predict(x, verbose=0)
    )


def test_tensorflow_checkpoint(tmp_path):
    task = tiny_masked_lm()
    path = tf.train.Checkpoint(model=task).save(str(tmp_path / "checkpoint"))
    copy = tiny_masked_lm()
    tf.train.Checkpoint(model=copy).restore(path)
    x, *_ = masked_batch(fresh_rng())
    np.testing.assert_array_equal(copy(x), task(x))


def test_warm_start_of_a_task_copies_its_head():
    plain = tiny_masked_lm(memory_layers=())
    task = tiny_masked_lm()
    report = copy_matching_weights(plain, task)
    assert "mlm_head/intermediate_dense/kernel" in report.copied
    assert all("/memory/" in path for path in report.new)
    assert len(report.new) == 2 * 8 and not report.left_over
    assert f"{len(report.copied)} weights copied" in str(report)


def test_warm_start_of_another_size_copies_nothing():
    task = tiny_masked_lm()
    before = task.get_weights()
    with pytest.raises(ValueError, match="same shape.*16.*32|same sizes"):
        copy_matching_weights(tiny_masked_lm(hidden_dim=32), task)
    for old, new in zip(before, task.get_weights()):
        np.testing.assert_array_equal(old, new)


@pytest.mark.slow
def test_evaluate_under_a_strategy_with_bool_masks(mirrored):
    """keras-hub's own tasks fail on both."""
    x, labels, weights = masked_batch(fixed_rng(), batch=6)
    x["padding_mask"] = x["padding_mask"].astype(bool)
    task = tiny_masked_lm(**ONE_LAYER)
    with mirrored.scope():
        copy = tiny_masked_lm(**ONE_LAYER)
        copy.compile(weighted_metrics=["sparse_categorical_accuracy"])
    copy.set_weights(task.get_weights())
    data = tf.data.Dataset.from_tensor_slices((x, labels, weights)).batch(6)
    expected = task.evaluate(data, return_dict=True, verbose=0)
    actual = copy.evaluate(data, return_dict=True, verbose=0)
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=1e-5)


def test_perplexity_divides_by_the_masked_tokens():
    x, labels, weights = masked_batch(fresh_rng(), batch=10)
    weights[0] = 0
    task = tiny_masked_lm(**ONE_LAYER)
    task.compile(
        weighted_metrics=[keras_hub.metrics.Perplexity(from_logits=True)]
    )
    data = tf.data.Dataset.from_tensor_slices((x, labels, weights)).batch(4)
    logs = task.evaluate(data, return_dict=True, verbose=0)
    log_p = tf.nn.log_softmax(tf.cast(task(x), "float64")).numpy()
    nll = -np.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    expected = np.exp((nll * weights).sum() / weights.sum())
    np.testing.assert_allclose(logs["perplexity"], expected, rtol=1e-5)


@pytest.mark.slow
def test_memory_probe_is_the_same_on_two_devices(mirrored):
    x, labels, weights = masked_batch(fresh_rng(), batch=12)
    backbone = tiny_backbone()
    with mirrored.scope():
        copy = tiny_backbone()
    copy.set_weights(backbone.get_weights())
    data = tf.data.Dataset.from_tensor_slices((x, labels, weights)).batch(4)
    probe = MemoryProbe(backbone)
    usage = probe.measure(data)
    assert usage == MemoryProbe(copy).measure(data)
    # A second measurement starts anew; features alone will do.
    assert usage == probe.measure(data.map(lambda x, *_: x))
    tokens = x["padding_mask"].sum()
    assert [u["top1_reads"] for u in usage.values()] == [2 * tokens] * 2
    assert list(usage) == [1, 3]


@pytest.mark.slow
def test_common_padding_changes_no_train_step():
    """Fine-tuning cuts it off."""
    rng = fixed_rng()
    whole = features(rng, length=12)
    for name in ("token_ids", "padding_mask"):
        whole[name][:, 8:] = 0
    labels = rng.integers(0, 2, 8)
    steps = []
    for length in (12, 8):
        keras.utils.set_random_seed(1)
        task = MemoryBertTextClassifier(tiny_backbone(), num_classes=2)
        batch = {name: value[:, :length] for name, value in whole.items()}
        with tf.GradientTape() as tape:
            loss = keras.losses.sparse_categorical_crossentropy(
                labels, task(batch, training=True), from_logits=True
            )
        gradients = tape.gradient(loss, task.trainable_variables)
        statistics = [
            weight for weight in task.weights if "moving" in weight.path
        ]
        dense = map(tf.convert_to_tensor, gradients)
        steps.append([*dense, *map(tf.convert_to_tensor, statistics)])
    assert len(statistics) == 4
    for one, other in zip(*steps):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
