"""Which implementation of memories the methods of a task use."""

import pytest
import tensorflow as tf

from keras_pkm.ops import use_implementation
from keras_pkm.ops.tensorflow import cpu_reads
from tests.contracts import fresh_rng
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_masked_lm
from tests.slow_tier import slow_but


@pytest.mark.parametrize("around", slow_but("auto", ["auto", "portable"]))
def test_evaluate_and_predict_use_the_fastest(around, monkeypatch):
    """A graph of the caller's own does not: it may be exported."""
    calls = []
    read = cpu_reads.weighted_sum

    def counted(*arguments):
        calls.append(arguments)
        return read(*arguments)

    monkeypatch.setattr(cpu_reads, "weighted_sum", counted)
    task = tiny_masked_lm(**ONE_LAYER)
    x, *_ = batch = masked_batch(fresh_rng())
    used = []
    for run in (
        lambda: task.test_on_batch(*batch),
        lambda: task.predict_on_batch(x),
        lambda: tf.function(task)(x),
    ):
        calls.clear()
        with use_implementation(around):
            run()
        used.append(bool(calls))
    assert used == ([True, True, False] if around == "auto" else [False] * 3)
