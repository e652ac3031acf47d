"""The loss on a dev set is that of its rows, whatever fills up a batch."""

import types

import keras
import numpy as np
import pytest

from training.batches.labelled import Labelled
from training.batches.labelled import dev_batches
from training.finetuning.glue import GlueFinetuning


def test_a_last_batch_that_is_not_full():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(33, 4)), rng.integers(0, 2, 33)
    kind = object.__new__(GlueFinetuning)
    kind._task = types.SimpleNamespace(metric="accuracy", labels="ab")
    kind._recipe = types.SimpleNamespace(batch_size=32)
    data = Labelled({"x": x.astype("float32")}, y.astype("int32"))
    kind._dev = {"dev": dev_batches(data, batch_size=32)}
    kind._dev_rows = {"dev": 33}
    inputs = keras.Input((4,), name="x")
    model = keras.Model({"x": inputs}, keras.layers.Dense(2)(inputs))
    kind.compile(model, keras.optimizers.SGD())
    figures = kind.evaluate(model).figures
    logits = np.array(model({"x": x}), "float64")
    losses = np.log(np.exp(logits).sum(-1)) - logits[np.arange(33), y]
    assert figures["dev loss"] == pytest.approx(losses.mean(), rel=1e-5)
    right = (logits.argmax(-1) == y).mean()
    assert figures["dev accuracy"] == pytest.approx(right)
