import math

import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.metrics import MemoryUsage
from tests.contracts import check_config_round_trip
from tests.contracts import fresh_rng


def by_hand(slots, weights, mask, num_slots):
    """Counts in Python, one read after another."""
    u, t, t_token, w = (np.zeros(num_slots) for _ in range(4))
    for token in np.flatnonzero(mask.reshape(-1)):
        heads = slots.reshape(-1, *slots.shape[-2:])[token]
        head_weights = weights.reshape(-1, *slots.shape[-2:])[token]
        best = (-1, None)
        for some_slots, some_weights in zip(heads, head_weights):
            for slot, weight in zip(some_slots, some_weights):
                u[slot] += 1
                w[slot] += weight
                best = max(best, (weight, slot), key=lambda pair: pair[0])
            t[some_slots[np.argmax(some_weights)]] += 1
        t_token[best[1]] += 1

    def divergence(x):
        p = x[x > 0] / x.sum()
        return math.log(num_slots) + (p * np.log(p)).sum()

    return {
        "mu": (u > 0).mean(),
        "top1_mu": (t > 0).mean(),
        "top1_token_mu": (t_token > 0).mean(),
        "kl_u": divergence(u),
        "kl_w": divergence(w),
        "top1_reads": t.sum(),
    }


def random_access(rng, shape, num_slots):
    slots = rng.integers(0, num_slots, shape).astype("int32")
    weights = rng.random(shape).astype("float32")
    return slots, np.sort(weights)[..., ::-1].copy()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("batches", [1, 3])
def test_equals_counting_by_hand(padded, batches):
    rng = fresh_rng()
    metric = MemoryUsage(40)
    accesses = [random_access(rng, (2, 6, 3, 2), 40) for _ in range(batches)]
    masks = rng.random((batches, 2, 6)) < (0.6 if padded else 2)
    for (slots, weights), mask in zip(accesses, masks):
        metric.update_state(
            slots, weights, padding_mask=mask if padded else None
        )
    slots, weights = (np.concatenate(x) for x in zip(*accesses))
    expected = by_hand(slots, weights, masks, 40)
    actual = metric.result()
    assert list(actual) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(
            actual[name], value, rtol=1e-12, err_msg=name
        )


def test_a_slot_of_weight_zero_is_not_read():
    metric = MemoryUsage(8)
    slots = np.array([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    weights = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    metric.update_state(slots, weights)
    only_first = np.eye(8, dtype="int64")[0]
    for name in ("reads", "top1", "top1_of_token", "weights"):
        np.testing.assert_array_equal(metric.counts[name], only_first)


def test_extremes():
    even = MemoryUsage(16)
    even.update_state(np.arange(16).reshape(16, 1, 1), np.ones((16, 1, 1)))
    np.testing.assert_allclose(even.result()["kl_u"], 0, atol=1e-12)
    assert even.result()["top1_mu"] == 1
    one = MemoryUsage(512**2)
    one.update_state(np.full((5, 1, 1), 7), np.ones((5, 1, 1)))
    np.testing.assert_allclose(one.result()["kl_w"], 12.477, atol=1e-3)
    fresh = MemoryUsage(16).result()
    assert all(value == 0 for value in fresh.values())


def test_counts_stay_exact_where_float32_stops_counting():
    metric = MemoryUsage(2)
    high, low = metric.variables[:2]
    high.assign([2**30, 2**4])
    low.assign([0, 2**20 - 1])
    metric.update_state([[[0, 1]]], [[[0.5, 0.5]]])
    reads = metric.counts["reads"]
    assert reads.dtype == "int64"
    assert reads.tolist() == [2**50 + 1, 2**24 + 2**20]


def test_reset():
    metric = MemoryUsage(4)
    metric.update_state([[[0, 1]]], [[[0.5, 0.5]]])
    metric.reset_state()
    assert metric.result()["top1_reads"] == 0


def test_sums_over_replicas(mirrored):
    rng = fresh_rng()
    slots, weights = random_access(rng, (8, 5, 2, 3), 30)
    mask = rng.random((8, 5)) < 0.5
    one = MemoryUsage(30)
    one.update_state(slots, weights, padding_mask=mask)
    with mirrored.scope():
        two = MemoryUsage(30)
    data = tf.data.Dataset.from_tensor_slices((slots, weights, mask)).batch(4)
    for batch in mirrored.experimental_distribute_dataset(data):
        mirrored.run(two.update_state, batch)
    for name, value in one.result().items():
        np.testing.assert_allclose(two.result()[name], value, rtol=1e-12)


def test_config():
    copy = check_config_round_trip(MemoryUsage(9, name="usage"))
    assert (copy.num_slots, copy.name) == (9, "usage")
    with pytest.raises(ValueError, match="`num_slots` must be a positive"):
        MemoryUsage(0)


def test_shapes_that_do_not_fit():
    slots, weights = np.zeros((4, 6, 3, 2), "int32"), np.ones((4, 6, 3, 2))
    metric = MemoryUsage(5)
    for arguments, message in (
        ((slots, weights.swapaxes(2, 3)), "`weights` must have"),
        ((slots, weights[:2]), "`weights` must have"),
        ((slots, weights, np.ones((6, 4))), "`padding_mask` must have"),
        ((slots, weights, np.ones((4, 1))), "`padding_mask` must have"),
        ((slots[0, 0, 0], weights[0, 0, 0]), "`slots` must have"),
    ):
        with pytest.raises(ValueError, match=f"{message}.*Received: "):
            metric.update_state(*arguments)
    assert metric.result()["top1_reads"] == 0


def test_padding_may_contain_nan():
    rng = fresh_rng()
    slots, weights = rng.integers(0, 8, (4, 2, 3)), rng.random((4, 2, 3))
    mask = np.array([1, 1, 0, 1])
    expected, usage = MemoryUsage(8), MemoryUsage(8)
    expected.update_state(slots, weights, mask)
    weights[2] = np.nan
    usage.update_state(slots, weights, mask)
    assert usage.result() == expected.result()
