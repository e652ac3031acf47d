import numpy as np
import pytest

from keras_pkm.metrics import MemoryStaleness
from tests.contracts import check_config_round_trip
from tests.contracts import fresh_rng


def test_equals_looking_back_by_hand():
    rng = fresh_rng()
    reads = rng.integers(0, 5, (6, 200)) * (rng.random((6, 200)) < 0.3)
    steps = [10, 20, 25, 100, 2**40, 2**40 + 1]
    metric = MemoryStaleness(200)
    for some, step in zip(reads, steps):
        metric.update_state(some, step)
    last = [
        max((step for some, step in zip(column, steps) if some), default=-1)
        for column in reads.T
    ]
    np.testing.assert_array_equal(metric.last_steps, last)
    shares = {name: float(value) for name, value in metric.result().items()}
    assert shares == {
        "fresh": last.count(steps[-1]) / 200,
        "stale": sum(0 <= step < steps[-1] for step in last) / 200,
        "never": last.count(-1) / 200,
    }


def test_steps_grow():
    metric = MemoryStaleness(2)
    metric.update_state([1, 0], step=0)
    with pytest.raises(ValueError, match="which was 0. Received: step=0"):
        metric.update_state([1, 0], step=0)


def test_reset():
    metric = MemoryStaleness(2)
    metric.update_state([1, 0], step=5)
    metric.reset_state()
    assert metric.result()["never"] == 1
    metric.update_state([1, 0], step=3)
    assert metric.result()["fresh"] == 0.5


def test_config():
    copy = check_config_round_trip(MemoryStaleness(9, name="stale"))
    assert (copy.num_slots, copy.name) == (9, "stale")
    with pytest.raises(ValueError, match="`num_slots` must be a positive"):
        MemoryStaleness(0)
