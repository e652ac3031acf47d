"""Callbacks and the probe: eager, in graphs, on two devices."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.callbacks import MemoryUsageMonitor
from keras_pkm.callbacks import SkippedSteps
from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.models import MemoryProbe
from tests.conformance.comparing import components
from tests.conformance.descriptors import MEMORY
from tests.conformance.descriptors import inputs_of
from tests.conformance.descriptors import labels_of
from tests.conformance.descriptors import make_model

CALLBACKS = ["MemoryUsageMonitor", "SkippedSteps", "TrainingCheckpoint"]
PROBES = ["MemoryProbe"]
MODEL = "MemoryDistilBertBackbone"


def usage_by_hand(backbone):
    """The share of slots read, and that of the best of heads."""
    inputs = inputs_of(MODEL)
    model = keras.Model(backbone.inputs, backbone.memory_outputs[1])
    slots, _ = model(inputs)
    slots = np.array(slots)[np.array(inputs["padding_mask"]) == 1]
    num_slots = MEMORY["num_sub_keys"] ** 2
    return {
        "mu": len(np.unique(slots)) / num_slots,
        "top1_mu": len(np.unique(slots[..., 0])) / num_slots,
        "top1_reads": slots[..., 0].size,
    }


def dataset():
    return tf.data.Dataset.from_tensors((inputs_of(MODEL), labels_of(MODEL)))


@pytest.fixture(
    params=[
        "eager",
        "graph",
        pytest.param("two replicas", marks=pytest.mark.slow),
    ]
)
def compiled(request, mirrored):
    """A compiled model, and a copy of it with other weights."""
    strategy = tf.distribute.get_strategy()
    if request.param == "two replicas":
        strategy = mirrored
    with strategy.scope():
        models = [make_model(MODEL) for _ in range(2)]
        for model in models:
            model.compile(
                keras.optimizers.SGD(0.1),
                "mse",
                run_eagerly=request.param == "eager",
            )
    models[1].set_weights([0 * weight for weight in models[1].get_weights()])
    return models


def test_callbacks(compiled, tmp_path):
    model, copy = compiled
    monitor = MemoryUsageMonitor(dataset(), every=1)
    checkpoint = TrainingCheckpoint(tmp_path, every=1)
    logs = model.fit(
        dataset().repeat(2),
        callbacks=[monitor, SkippedSteps(), checkpoint],
        shuffle=False,
        verbose=0,
    ).history

    # Keras' optimizers skip none.
    assert logs["skipped_steps"] == [0]
    expected = usage_by_hand(model)
    assert 0 < expected["top1_mu"] < expected["mu"] < 1
    for name, value in expected.items():
        assert monitor.usage[1][name] == value
        assert logs[f"memory_1_{name}"] == [value]
    assert monitor.staleness[1].result()["fresh"] == expected["top1_mu"]

    assert TrainingCheckpoint(tmp_path).restore(copy) == 2
    for old, new in zip(
        [*model.variables, *model.optimizer.variables],
        [*copy.variables, *copy.optimizer.variables],
        strict=True,
    ):
        first, *others = [*components(old), *components(new)]
        for other in others:
            np.testing.assert_array_equal(first, other, err_msg=old.path)


def test_memory_probe_in_eager_mode():
    """The tests of callbacks have it in graphs and on two devices."""
    backbone = make_model(MODEL)
    tf.config.run_functions_eagerly(True)
    try:
        usage = MemoryProbe(backbone).measure(dataset())
    finally:
        tf.config.run_functions_eagerly(False)
    expected = usage_by_hand(backbone)
    assert {name: usage[1][name] for name in expected} == expected
