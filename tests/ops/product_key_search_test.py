import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.ops import product_key_search
from tests.contracts import assert_close
from tests.contracts import fresh_rng


def brute_force(queries, sub_keys, top_k):
    """Scores of all slots, and the best of them, the lowest slot first."""
    half = sub_keys.shape[-1]
    first = np.einsum("thd,hnd->thn", queries[..., :half], sub_keys[:, 0])
    second = np.einsum("thd,hnd->thn", queries[..., half:], sub_keys[:, 1])
    scores = first[..., :, None] + second[..., None, :]
    scores = scores.reshape(*scores.shape[:2], -1)
    slots = np.argsort(-scores, axis=-1, kind="stable")[..., :top_k]
    return slots, np.take_along_axis(scores, slots, -1)


@pytest.mark.parametrize(
    "tokens, heads, n, half, top_k",
    [
        (7, 3, 12, 5, 1),
        (50, 2, 16, 8, 16),
        (20, 4, 40, 16, 32),
        (1, 1, 1, 1, 1),
    ],
)
def test_finds_what_brute_force_finds(tokens, heads, n, half, top_k):
    rng = fresh_rng()
    queries = rng.normal(size=(tokens, heads, 2 * half))
    sub_keys = rng.normal(size=(heads, 2, n, half))
    slots, scores = product_key_search(queries, sub_keys, top_k)
    expected_slots, expected_scores = brute_force(queries, sub_keys, top_k)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-4)
    # Neighbours closer than float32 can tell may change places.
    differ = np.asarray(slots) != expected_slots
    gaps = np.abs(np.diff(expected_scores, axis=-1, append=np.nan))
    near = np.minimum(gaps, np.roll(gaps, 1, axis=-1)) < 1e-4
    near |= np.arange(top_k) == top_k - 1
    assert not (differ & ~near).any()
    assert differ.mean() < 0.05


@pytest.mark.parametrize("top_k", [1, 3, 8, 32])
def test_ties_go_to_the_lowest_candidates(top_k):
    # Small integers: float32 is exact, and nearly everything ties.
    rng = fresh_rng()
    queries = rng.integers(-1, 2, size=(40, 2, 4)).astype("float32")
    sub_keys = rng.integers(-1, 2, size=(2, 2, 32, 2)).astype("float32")
    slots, scores = product_key_search(queries, sub_keys, top_k)

    halves = queries.reshape(40, 2, 2, 2)
    sub_scores = np.einsum("thsd,hsnd->thsn", halves, sub_keys)
    best = np.argsort(-sub_scores, axis=-1, kind="stable")[..., :top_k]
    best_scores = np.take_along_axis(sub_scores, best, -1)
    # All top_k² candidates, none of them pruned.
    candidates = best_scores[:, :, 0, :, None] + best_scores[:, :, 1, None, :]
    numbers = 32 * best[:, :, 0, :, None] + best[:, :, 1, None, :]
    candidates = candidates.reshape(40, 2, -1)
    order = np.argsort(-candidates, axis=-1, kind="stable")[..., :top_k]
    np.testing.assert_array_equal(
        slots, np.take_along_axis(numbers.reshape(40, 2, -1), order, -1)
    )
    np.testing.assert_array_equal(
        scores, np.take_along_axis(candidates, order, -1)
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_scores_are_float32(dtype):
    queries = tf.cast(tf.random.normal((5, 2, 8)), dtype)
    sub_keys = tf.cast(tf.random.normal((2, 2, 6, 4)), dtype)
    slots, scores = product_key_search(queries, sub_keys, 3)
    assert (slots.dtype, scores.dtype) == (tf.int32, tf.float32)
    expected = product_key_search(
        tf.cast(queries, "float32"), tf.cast(sub_keys, "float32"), 3
    )
    np.testing.assert_array_equal(slots, expected[0])
    np.testing.assert_array_equal(scores, expected[1])


def gradients(search, queries, sub_keys):
    with tf.GradientTape() as tape:
        tape.watch([queries, sub_keys])
        _, scores = search(queries, sub_keys, top_k=8)
        loss = tf.reduce_sum(tf.sin(scores))
    return tape.gradient(loss, [queries, sub_keys])


@pytest.mark.parametrize("tokens", [0, 1, 50])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("implementation", ["fastest", "portable"])
def test_gradient_is_that_of_all_scores(tokens, compiled, implementation):
    """Of the dense matrix of them, as TensorFlow differentiates it."""

    def dense(queries, sub_keys, top_k):
        first, second = (
            tf.einsum("thd,hnd->thn", half, keys)
            for half, keys in zip(
                tf.split(queries, 2, axis=-1), tf.unstack(sub_keys, axis=1)
            )
        )
        scores = first[..., :, None] + second[..., None, :]
        scores = tf.reshape(scores, (-1, 3, 16 * 16))
        return None, tf.math.top_k(scores, top_k)[0]

    queries = tf.random.normal((tokens, 3, 8))
    sub_keys = tf.random.normal((3, 2, 16, 4))
    search = functools.partial(
        product_key_search, implementation=implementation
    )
    run = functools.partial(gradients, search)
    if compiled:
        specs = tf.TensorSpec((None, 3, 8)), tf.TensorSpec(sub_keys.shape)
        run = tf.function(run, input_signature=specs)
    actual = run(queries, sub_keys)
    expected = gradients(dense, queries, sub_keys)
    assert_close(actual[0], expected[0])
    assert_close(actual[1], expected[1])


def test_more_slots_than_sub_keys_are_refused():
    sub_keys = np.zeros((4, 2, 8, 16), "float32")
    with pytest.raises(ValueError, match="at most the number of sub-keys.* 8"):
        product_key_search(np.zeros((10, 4, 32), "float32"), sub_keys, 9)


def test_queries_of_other_heads_are_refused():
    """Their number of entries may fit, but not their shape."""
    sub_keys = np.zeros((4, 2, 8, 16), "float32")
    with pytest.raises(ValueError, match="the 4 heads.*32.*10, 2, 64"):
        product_key_search(np.zeros((10, 2, 64), "float32"), sub_keys, 2)
