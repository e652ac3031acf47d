import math

import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.metrics import ClassMemoryUsage
from keras_pkm.metrics import MemoryUsage
from tests.contracts import check_config_round_trip
from tests.contracts import fresh_rng


def by_hand(slots, weights, labels, mask, num_slots):
    """Counts in Python, one read after another."""
    t = np.zeros((2, num_slots))
    for example, label in enumerate(labels):
        for token in np.flatnonzero(mask[example]):
            heads = zip(slots[example, token], weights[example, token])
            for some_slots, some_weights in heads:
                if label in (0, 1):
                    t[label, some_slots[np.argmax(some_weights)]] += 1
    no, yes = t[0] / t[0].sum(), t[1] / t[1].sum()
    smoothed = [(count + 0.5) / (t[0] + 0.5).sum() for count in t[0]]
    return {
        "kl": sum(p * math.log(p / q) for p, q in zip(yes, smoothed) if p),
        "outside": sum(p for p, q in zip(yes, no) if not q),
        "iou": np.minimum(yes, no).sum() / np.maximum(yes, no).sum(),
        "reads_0": t[0].sum(),
        "reads_1": t[1].sum(),
    }


def random_access(rng, batch, num_slots):
    shape = (batch, 6, 3, 2)
    slots = rng.integers(0, num_slots, shape).astype("int32")
    weights = rng.random(shape).astype("float32")
    return slots, weights, rng.integers(-1, 3, batch), rng.random(shape[:2])


@pytest.mark.parametrize("num_slots", [5, 400])
def test_equals_counting_by_hand(num_slots):
    rng = fresh_rng()
    metric = ClassMemoryUsage(num_slots)
    accesses = [random_access(rng, 10, num_slots) for _ in range(3)]
    for slots, weights, labels, noise in accesses:
        metric.update_state(slots, weights, labels, padding_mask=noise < 0.6)
    slots, weights, labels, noise = map(np.concatenate, zip(*accesses))
    expected = by_hand(slots, weights, labels, noise < 0.6, num_slots)
    actual = metric.result()
    assert list(actual) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=1e-12)
    np.testing.assert_array_equal(
        metric.counts.sum(1), [expected["reads_0"], expected["reads_1"]]
    )


def read(metric, slots, labels):
    slots = np.reshape(slots, (len(labels), -1, 1, 1))
    metric.update_state(slots, np.ones_like(slots, "float32"), labels)
    return {name: float(value) for name, value in metric.result().items()}


def test_extremes():
    same = read(ClassMemoryUsage(2), [[0, 1], [1, 0]], [0, 1])
    assert (same["iou"], same["outside"], same["kl"]) == (1, 0, 0)
    disjoint = read(ClassMemoryUsage(2), [[0, 0], [1, 1]], [0, 1])
    assert (disjoint["iou"], disjoint["outside"]) == (0, 1)
    np.testing.assert_allclose(disjoint["kl"], math.log(1 / (0.5 / 3)))


def test_one_class_alone_says_nothing():
    figures = read(ClassMemoryUsage(3), [[0, 1], [1, 2]], [1, 1])
    assert figures == {
        "kl": 0,
        "outside": 0,
        "iou": 0,
        "reads_0": 0,
        "reads_1": 4,
    }


def test_counts_stay_exact_where_float32_stops_counting():
    metric = ClassMemoryUsage(2)
    high, _ = metric.variables
    high.assign([2**30, 0, 2**4, 0])
    read(metric, [[0], [0]], [0, 1])
    expected = [[2**50 + 1, 0], [2**24 + 1, 0]]
    assert metric.counts.dtype == "int64"
    np.testing.assert_array_equal(metric.counts, expected)
    assert metric.totals == {"reads_0": 2**50 + 1, "reads_1": 2**24 + 1}


def test_sums_over_replicas(mirrored):
    access = random_access(fresh_rng(), 8, 30)
    one = ClassMemoryUsage(30)
    one.update_state(*access)
    with mirrored.scope():
        two = ClassMemoryUsage(30)
    data = tf.data.Dataset.from_tensor_slices(access).batch(4)
    for batch in mirrored.experimental_distribute_dataset(data):
        mirrored.run(two.update_state, batch)
    for name, value in one.result().items():
        np.testing.assert_allclose(two.result()[name], value, rtol=1e-12)


def test_config():
    copy = check_config_round_trip(ClassMemoryUsage(9, name="usage"))
    assert (copy.num_slots, copy.name) == (9, "usage")
    with pytest.raises(ValueError, match="`num_slots` must be a positive"):
        ClassMemoryUsage(0)


@pytest.mark.parametrize("in_graph", [False, True])
def test_labels_in_all_forms(in_graph):
    rng = fresh_rng()
    slots, weights, labels, _ = random_access(rng, 10, 5)
    labels = np.maximum(labels, 0)
    expected = ClassMemoryUsage(5)
    expected.update_state(slots, weights, labels)
    assert expected.counts.sum()
    for form in (
        labels[:, None],
        labels.astype("float32"),
        np.eye(3)[labels],
        np.eye(3, dtype="bool")[labels],
        0.9 * np.eye(3)[labels] + 0.1 / 3,
    ):
        metric = ClassMemoryUsage(5)
        update = metric.update_state
        if in_graph:
            update = tf.function(lambda *args: metric.update_state(*args))
        update(tf.constant(slots), weights, tf.constant(form))
        np.testing.assert_array_equal(metric.counts, expected.counts)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(9), "one label for each example of `slots`"),
        (np.zeros(5), "one label for each example of `slots`"),
        (np.zeros(20), "one label for each example of `slots`"),
        (np.zeros((10, 6)), "Rows of `labels` must be one-hot"),
        (np.full((10, 2), 0.5), "Rows of `labels` must be one-hot"),
        (np.full(10, 0.9), "`labels` must be class numbers, whole numbers"),
        (np.zeros((10, 6, 2)), "`labels` must be class numbers of shape"),
        (np.array(["1"] * 10), "`labels` must be numbers"),
    ],
)
def test_labels_that_are_none(labels, message):
    slots, weights, *_ = random_access(fresh_rng(), 10, 5)
    metric = ClassMemoryUsage(5)
    with pytest.raises(ValueError, match=f"{message}.*Received"):
        metric.update_state(slots, weights, labels)
    assert not metric.counts.any()


@pytest.mark.parametrize("metric", [ClassMemoryUsage(4), MemoryUsage(4)])
def test_slots_of_a_larger_memory(metric):
    """They would be counted as reads of the other class."""
    slots, weights, labels, _ = random_access(fresh_rng(), 10, 5)
    arguments = (slots, weights, labels)[: 3 - isinstance(metric, MemoryUsage)]
    with pytest.raises(ValueError, match="`num_slots` slots, 4. Received: "):
        metric.update_state(*arguments)
    counted = metric.counts
    counted = counted["reads"] if isinstance(counted, dict) else counted
    assert not counted.any()


def test_shapes_that_do_not_fit():
    slots, weights, labels, noise = random_access(fresh_rng(), 10, 5)
    metric = ClassMemoryUsage(5)
    for arguments, message in (
        ((slots, weights[..., ::-1, :1], labels), "`weights` must have"),
        ((slots, weights.swapaxes(2, 3), labels), "`weights` must have"),
        ((slots, weights, labels, noise.T), "`padding_mask` must have"),
        ((slots, weights, labels, noise[:5]), "`padding_mask` must have"),
        ((slots[0, 0, 0], weights[0, 0, 0], labels), "`slots` must have"),
    ):
        with pytest.raises(ValueError, match=f"{message}.*Received: "):
            metric.update_state(*arguments)


def test_a_head_whose_weights_are_zero_reads_nothing():
    metric = ClassMemoryUsage(4)
    slots = np.array([[[0, 1], [2, 3]], [[1, 0], [3, 2]]])
    weights = np.array([[[0.6, 0.4], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
    metric.update_state(slots, weights, labels=np.array([0, 1]))
    assert metric.counts.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]
