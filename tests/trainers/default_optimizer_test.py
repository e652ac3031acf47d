"""What trains tasks that were not told an optimizer."""

import logging

import keras
import numpy as np
import pytest

from keras_pkm.models import MemoryBertTextClassifier
from keras_pkm.models import freeze_memory
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from tests.contracts import fresh_rng
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import features
from tests.models.tiny import tiny_backbone
from tests.models.tiny import tiny_masked_lm


def new_task(**kwargs):
    return MemoryBertTextClassifier(
        tiny_backbone(**{**ONE_LAYER, **kwargs}), num_classes=2
    )


def fit(task, batch=8):
    rng = fresh_rng()
    # So few tokens of one text read 40 of the 121 rows at most.
    x = features(rng, batch, length=5)
    labels = rng.integers(0, 2, batch)
    task.run_eagerly = True
    task.fit(x, labels, batch_size=4, shuffle=False, verbose=0)


def warnings_in(caplog):
    """Ours alone: grain, where it is installed, has some of its own."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelname == "WARNING" and record.name.startswith("keras_pkm")
    ]


def values_of(task):
    return task.backbone.transformer_layers[0].memory.table.values


def test_rows_that_no_token_read_stay(caplog):
    task = new_task()
    assert type(task.optimizer) is PKMAdam
    assert float(task.optimizer.learning_rate) == pytest.approx(5e-5)
    before = values_of(task).numpy()
    fit(task, batch=1)
    changed = (values_of(task).numpy() != before).any(-1)
    assert 0 < changed.sum() < len(changed)
    assert not warnings_in(caplog)


@pytest.mark.slow
def test_frozen_values_and_plain_models():
    task = new_task()
    freeze_memory(task.backbone)
    before = values_of(task).numpy()
    fit(task)
    np.testing.assert_array_equal(values_of(task), before)
    fit(new_task(memory_layers=()))


def test_half_precision_is_scaled():
    assert type(new_task(dtype="mixed_float16").optimizer) is LossScaleOptimizer
    assert type(new_task(dtype="mixed_bfloat16").optimizer) is PKMAdam
    # As models have whose layers have policies of their own.
    policies = keras.dtype_policies.DTypePolicyMap("mixed_float16")
    assert type(new_task(dtype=policies).optimizer) is LossScaleOptimizer


@pytest.mark.parametrize("inner", ["adam", PKMAdam])
def test_only_optimizers_can_be_wrapped(inner):
    with pytest.raises(ValueError, match="`inner_optimizer` must be"):
        LossScaleOptimizer(inner)


@pytest.mark.parametrize("optimizer", ["adam", "AdamW", "scaled"])
def test_another_optimizer_is_warned_of_once(optimizer, caplog):
    if optimizer == "AdamW":
        optimizer = keras.optimizers.AdamW()
    elif optimizer == "scaled":
        optimizer = LossScaleOptimizer(keras.optimizers.SGD())
    task = new_task()
    with caplog.at_level(logging.WARNING, "keras_pkm"):
        task.compile(optimizer)
        task.compile(optimizer)
    (warning,) = warnings_in(caplog)
    assert "MemoryBertTextClassifier is compiled with" in warning
    caplog.clear()
    frozen = new_task()
    freeze_memory(frozen.backbone)
    frozen.compile(optimizer)
    task.compile(PKMAdam())
    new_task(memory_layers=()).compile(optimizer)
    assert not warnings_in(caplog)


def test_keras_accumulation_keeps_the_statistics_of_each_part():
    """With a stock optimizer; they were rolled back on all but the last."""
    task = new_task()
    task.compile(keras.optimizers.SGD(0.1, gradient_accumulation_steps=4))
    memory = task.backbone.transformer_layers[0].memory
    moving = memory.query_normalization_layer.moving_mean
    before = moving.numpy()
    fit(task)
    assert task.optimizer.iterations == 0
    assert not np.array_equal(moving, before)


def test_pkm_adam_names_what_to_set_instead():
    with pytest.raises(ValueError, match="=4. Set `accumulation_steps` of a"):
        PKMAdam(gradient_accumulation_steps=4)
    with pytest.raises(TypeError, match="no argument amsgrad"):
        PKMAdam(amsgrad=True)


def test_accumulation_steps_can_change_between_fits(monkeypatch):
    parts = []

    def counted(model, data, num_parts):
        parts.append(num_parts)
        return {"loss": 0.0}

    monkeypatch.setattr(
        "keras_pkm.trainers.tensorflow_steps.accumulated_train_step",
        counted,
    )
    task = new_task()
    fit(task)
    task.accumulation_steps = 2
    fit(task)
    assert parts == [2, 2]
    with pytest.raises(
        ValueError, match="positive integer.*accumulation_steps=0"
    ):
        task.accumulation_steps = 0


def test_masked_lm():
    assert type(tiny_masked_lm(**ONE_LAYER).optimizer) is PKMAdam


def test_half_precision_has_our_loss_scaling():
    task = tiny_masked_lm(**ONE_LAYER, dtype="mixed_float16")
    task.compile(PKMAdam())
    assert type(task.optimizer) is LossScaleOptimizer
    task.compile(PKMAdam(), auto_scale_loss=False)
    assert type(task.optimizer) is PKMAdam
