import dataclasses
import math

import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from training.batches.masking import Masking
from training.batches.masking import mask_tokens

MASKING = Masking(
    vocabulary_size=50,
    mask_token_id=4,
    pad_token_id=0,
    special_token_ids=(0, 2, 3, 4),
    mask_selection_length=6,
)


# One graph for all lengths and batches: hypothesis draws many.
@tf.function(
    input_signature=[
        tf.TensorSpec([None, None], tf.int32),
        tf.TensorSpec([None, 2], tf.int64),
    ]
)
def mask(token_ids, seeds):
    return mask_tokens(token_ids, seeds, MASKING)


def _seeds(count, seed=1):
    return np.stack([np.full(count, seed), np.arange(count)], axis=1)


@given(
    st.lists(st.integers(0, 49), min_size=1, max_size=60),
    st.integers(0, 2**40),
)
@settings(deadline=None)
def test_invariants(token_ids, seed):
    token_ids = np.array(token_ids, np.int32)
    outputs = mask(token_ids[None], _seeds(1, seed))
    masked, positions, label_ids, weights = (x.numpy()[0] for x in outputs)

    selectable = ~np.isin(token_ids, MASKING.special_token_ids)
    count = np.ceil(np.float32(selectable.sum()) * np.float32(0.15))
    count = int(min(count, MASKING.mask_selection_length))
    assert positions.shape == label_ids.shape == weights.shape == (6,)
    assert weights.tolist() == [1.0] * count + [0.0] * (6 - count)
    assert not positions[count:].any() and not label_ids[count:].any()

    positions = positions[:count]
    assert np.all(np.diff(positions) > 0)
    assert selectable[positions].all()
    np.testing.assert_array_equal(label_ids[:count], token_ids[positions])
    others = np.delete(np.arange(len(token_ids)), positions)
    np.testing.assert_array_equal(masked[others], token_ids[others])
    assert 0 <= masked.min() and masked.max() < MASKING.vocabulary_size


def test_masks_depend_on_the_seed_not_on_the_batch():
    token_ids = np.random.default_rng(0).integers(5, 50, (8, 40), np.int32)
    seeds = _seeds(8)
    whole = mask(token_ids, seeds)
    again = mask(token_ids, seeds)
    reversed_ = mask(token_ids[::-1], seeds[::-1])
    alone = [mask(token_ids[i : i + 1], seeds[i : i + 1]) for i in range(8)]
    for output in range(4):
        expected = whole[output].numpy()
        np.testing.assert_array_equal(expected, again[output])
        np.testing.assert_array_equal(expected, reversed_[output][::-1])
        np.testing.assert_array_equal(
            expected, np.concatenate([outputs[output] for outputs in alone])
        )


def test_another_seed_selects_other_positions():
    token_ids = np.tile(np.arange(5, 45, dtype=np.int32), [50, 1])
    positions = mask(token_ids, _seeds(50))[1].numpy()
    other = mask(token_ids, _seeds(50, seed=2))[1].numpy()
    # Of C(40, 6) = 3.8 million selections two are hardly ever equal.
    assert len(np.unique(positions, axis=0)) == 50
    assert len(np.unique([*positions, *other], axis=0)) == 100


def _within(count, total, rate, sigmas=5):
    """Whether a binomial count is as near its mean as chance allows."""
    return abs(count - total * rate) < sigmas * math.sqrt(
        total * rate * (1 - rate)
    )


def _keras_hub(token_ids):
    tf.random.set_seed(3)
    generator = keras_hub.layers.MaskedLMMaskGenerator(
        vocabulary_size=MASKING.vocabulary_size,
        mask_selection_rate=MASKING.mask_selection_rate,
        mask_token_id=MASKING.mask_token_id,
        mask_selection_length=MASKING.mask_selection_length,
        unselectable_token_ids=list(MASKING.special_token_ids),
    )
    # In eager mode another implementation runs, which selects independently.
    dataset = tf.data.Dataset.from_tensors(token_ids).map(generator)
    outputs = dataset.get_single_element()
    keys = ("token_ids", "mask_positions", "mask_ids", "mask_weights")
    return [outputs[key] for key in keys]


def _ours(token_ids):
    return mask(token_ids, _seeds(len(token_ids)))


@pytest.mark.parametrize("implementation", [_ours, _keras_hub])
def test_rates_are_those_of_keras_hub(implementation):
    # Both pass the same bounds: 5 standard deviations, which chance exceeds
    # once in two million draws. The seeds are fixed, so the test is stable.
    rows, length = 4000, 32
    token_ids = np.full((rows, length), 7, np.int32)
    token_ids[:, 0] = 2
    token_ids[:, -1] = 3
    masked, positions, label_ids, weights = (
        np.asarray(x) for x in implementation(token_ids)
    )
    per_row = math.ceil(0.15 * (length - 2))
    assert np.all(weights.sum(axis=-1) == per_row)
    assert np.all(label_ids[weights == 1] == 7)

    chosen = np.take_along_axis(masked, positions.astype(np.int64), axis=1)
    chosen = chosen[weights == 1]
    total = chosen.size
    # A random id is [MASK] or the id itself once in 50 times each.
    assert _within(np.sum(chosen == 4), total, 0.8 + 0.1 / 50)
    assert _within(np.sum(chosen == 7), total, 0.1 + 0.1 / 50)
    for token in {*range(50)} - {4, 7}:
        assert _within(np.sum(chosen == token), total, 0.1 / 50)
    # Each position that is not special is selected equally often.
    counts = np.bincount(positions[weights == 1], minlength=length)
    assert counts[0] == counts[-1] == 0
    for count in counts[1:-1]:
        assert _within(count, rows, per_row / (length - 2))


def test_from_tokenizer(tokenizer):
    masking = Masking.from_tokenizer(tokenizer, 128)
    assert masking.mask_selection_length == 19
    assert masking.vocabulary_size == tokenizer.vocabulary_size()
    names = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
    ids = tuple(map(tokenizer.token_to_id, names))
    assert masking.special_token_ids == ids
    assert masking.pad_token_id == ids[0]
    assert masking.mask_token_id == ids[3]


def test_other_rates():
    masking = dataclasses.replace(
        MASKING,
        mask_selection_rate=1.0,
        mask_token_rate=0.0,
        random_token_rate=0.0,
        mask_selection_length=10,
    )
    token_ids = np.array([[2, 9, 8, 7, 3, 0]], np.int32)
    masked, positions, label_ids, _ = mask_tokens(token_ids, _seeds(1), masking)
    np.testing.assert_array_equal(masked, token_ids)
    assert positions.numpy().tolist() == [[1, 2, 3] + [0] * 7]
    assert label_ids.numpy().tolist() == [[9, 8, 7] + [0] * 7]
