import dataclasses
import itertools
import os

import numpy as np
import pytest
import tensorflow as tf

from training.batches.masking import Masking
from training.batches.objectives import MaskedTokens

MASKING = Masking(
    vocabulary_size=200,
    mask_token_id=4,
    pad_token_id=0,
    special_token_ids=(0, 2, 3, 4),
    mask_selection_length=3,
)
ROWS, LENGTH = 10, 16
MASKED = MaskedTokens(
    None, LENGTH, MASKING, ("token_ids", "segment_ids", "padding_mask")
)


@pytest.fixture(scope="module")
def packed():
    """Row i has the ids 10i + 10 to 10i + 19, and three of padding."""
    rows = np.zeros((ROWS, LENGTH), np.int32)
    rows[:, 0] = 2
    rows[:, 1:11] = 10 + np.arange(100).reshape(ROWS, 10)
    rows[:, 11] = 3
    return rows


def _train(packed, steps, batch_size=4, **kwargs):
    kwargs = {"seed": 5} | kwargs
    batches = MASKED.training_batches(packed, batch_size=batch_size, **kwargs)
    return list(itertools.islice(batches.as_numpy_iterator(), steps))


def _held_out(packed, batch_size, **kwargs):
    kwargs = {"seed": 5} | kwargs
    batches = MASKED.held_out_batches(packed, batch_size=batch_size, **kwargs)
    return list(batches.as_numpy_iterator())


def _unmask(batch):
    """Returns the rows before masking."""
    features, label_ids, weights = batch
    rows = features["token_ids"].copy()
    for row, positions, ids, weight in zip(
        rows, features["mask_positions"], label_ids, weights
    ):
        row[positions[weight == 1]] = ids[weight == 1]
    return rows


def _assert_same(batches, expected):
    tf.nest.map_structure(np.testing.assert_array_equal, batches, expected)


def test_element_spec(packed):
    for batches in (
        MASKED.training_batches(packed, batch_size=4, seed=5),
        MASKED.held_out_batches(packed, batch_size=4, seed=5),
    ):
        row = tf.TensorSpec((4, LENGTH), tf.int32)
        selected = tf.TensorSpec((4, 3), tf.int32)
        features = {
            "token_ids": row,
            "segment_ids": row,
            "padding_mask": row,
            "mask_positions": selected,
        }
        weights = tf.TensorSpec((4, 3), tf.float32)
        assert batches.element_spec == (features, selected, weights)


def test_only_what_the_model_takes(packed):
    few = dataclasses.replace(MASKED, input_names=("token_ids",))
    (features, _, _) = next(
        iter(few.held_out_batches(packed, batch_size=4, seed=5))
    )
    assert set(features) == {"token_ids", "mask_positions"}


def test_segments_and_padding(packed):
    for features, _, _ in _train(packed, 5):
        assert not features["segment_ids"].any()
        expected = np.tile([1] * 12 + [0] * 4, [4, 1])
        np.testing.assert_array_equal(features["padding_mask"], expected)


def test_an_epoch_holds_each_row_once(packed):
    rows = np.concatenate([_unmask(batch) for batch in _train(packed, 15)])
    orders = []
    for epoch in rows.reshape(6, ROWS, LENGTH):
        orders.append(tuple((epoch[:, 1] - 10) // 10))
        np.testing.assert_array_equal(packed[list(orders[-1])], epoch)
        assert sorted(orders[-1]) == list(range(ROWS))
    assert len(set(orders)) == 6


def test_masks_change_with_the_epoch(packed):
    ((features, _, _),) = _train(packed[:1], 1, batch_size=40)
    assert len(np.unique(features["mask_positions"], axis=0)) > 1


def test_continuing_at_a_step(packed):
    whole = _train(packed, 9)
    _assert_same(_train(packed, 9), whole)
    _assert_same(_train(packed, 4, first_step=5), whole[5:])
    _assert_same(_train(packed, 99, first_step=5, num_steps=2), whole[5:7])


def test_masks_do_not_depend_on_the_batch_size(packed):
    by_four = _train(packed, 3, batch_size=4)
    (by_twelve,) = _train(packed, 1, batch_size=12)
    joined = tf.nest.map_structure(lambda *x: np.concatenate(x), *by_four)
    _assert_same(joined, by_twelve)


def test_another_seed_is_another_stream(packed):
    one = np.concatenate([_unmask(b) for b in _train(packed, 3)])
    other = np.concatenate([_unmask(b) for b in _train(packed, 3, seed=6)])
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("batch_size", [1, 3, 5, 10, 64])
def test_held_out_holds_each_row_once_in_order(packed, batch_size):
    batches = _held_out(packed, batch_size)
    assert len(batches) == -(-ROWS // batch_size)
    rows = np.concatenate([_unmask(batch) for batch in batches])
    np.testing.assert_array_equal(rows[:ROWS], packed)
    assert not rows[ROWS:].any()
    weights = np.concatenate([weights for _, _, weights in batches])
    # ceil(0.15 · 10) = 2 of each row.
    assert weights[:ROWS].sum(axis=1).tolist() == [2] * ROWS
    assert not weights[ROWS:].any()
    padding = np.concatenate([batch[0]["padding_mask"] for batch in batches])
    assert not padding[ROWS:].any()


def test_held_out_masks_are_fixed(packed):
    batches = _held_out(packed, 5)
    _assert_same(_held_out(packed, 5), batches)
    (joined,) = _held_out(packed, ROWS)
    expected = tf.nest.map_structure(lambda *x: np.concatenate(x), *batches)
    _assert_same(joined, expected)


def test_the_corpus_is_not_read_into_memory(tmp_path):
    path = tmp_path / "packed.bin"
    path.touch()
    os.truncate(path, 2**36)  # 64 GiB of zeros, which take no space
    packed = np.memmap(path, np.int32, "r").reshape(-1, LENGTH)
    (batch,) = _train(packed, 1, first_step=10**6)
    assert not batch[0]["token_ids"].any()
