import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.metrics import MemoryStaleness
from tests.contracts import check_config_round_trip
from tests.contracts import fresh_rng


def test_equals_looking_back_by_hand():
    rng = fresh_rng()
    reads = rng.integers(0, 5, (6, 200)) * (rng.random((6, 200)) < 0.3)
    steps = [10, 20, 25, 100, 2**31 - 2, 2**31 - 1]
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
    for step in (2**31, 2**40, np.int64(2**31), tf.constant(2**31, "int64")):
        with pytest.raises(
            ValueError, match=r"below 2\*\*31.* Received: step=."
        ):
            metric.update_state([0, 1], step)
    assert metric.last_steps.tolist() == [0, -1]


def test_steps_grow_in_graphs():
    metric = MemoryStaleness(2)
    update = tf.function(metric.update_state)
    update(tf.constant([1, 0]), tf.constant(2))
    for step in (2, 1):
        with pytest.raises(tf.errors.InvalidArgumentError, match="`step` must"):
            update(tf.constant([0, 1]), tf.constant(step))
    assert metric.last_steps.tolist() == [2, -1]


def test_replicas_read_parts_of_the_data(mirrored):
    with mirrored.scope():
        metric = MemoryStaleness(3)
    for reads, step in (([[2, 0, 0], [0, 1, 0]], 4), ([[0, 0, 0]] * 2, 6)):
        of_replicas = mirrored.experimental_distribute_values_from_function(
            lambda context: tf.constant(reads[context.replica_id_in_sync_group])
        )
        mirrored.run(metric.update_state, (of_replicas, tf.constant(step)))
    assert metric.last_steps.tolist() == [4, 4, -1]
    result = {name: float(share) for name, share in metric.result().items()}
    assert result == pytest.approx({"fresh": 0, "stale": 2 / 3, "never": 1 / 3})
    metric.reset_state()
    assert metric.last_steps.tolist() == [-1, -1, -1]


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


def test_reads_of_64_bits():
    metric = MemoryStaleness(3)
    metric.update_state(np.array([2**32, 2**31, 0]), step=7)
    assert metric.last_steps.tolist() == [7, 7, -1]


def test_reads_of_another_shape():
    metric = MemoryStaleness(4)
    for reads in (1, [1], np.ones((4, 4)), np.ones(3)):
        with pytest.raises(ValueError, match="`top1_reads` must.*Received"):
            metric.update_state(reads, step=1)
