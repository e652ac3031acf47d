"""A kind of memory that the package does not know is trained as ours are."""

import keras
import keras_hub
import numpy as np
import pytest

import keras_pkm
from keras_pkm.layers.memories import memories
from keras_pkm.layers.memories import tables
from keras_pkm.optimizers import PKMAdam
from tests.any_backbone.random_memory import RandomMemory
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_plain


@pytest.mark.slow
def test_trained_measured_and_frozen():
    task = keras_hub.models.GPT2CausalLM(make_plain("GPT2"))
    model = keras_pkm.models.add_memory(task, (2,), RandomMemory())
    inputs = inputs_of(model.backbone)
    labels = inputs["token_ids"]
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
