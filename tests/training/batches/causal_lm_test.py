"""Next tokens of packed rows, and what is padding."""

import types

import numpy as np
import pytest
import tensorflow as tf

from training.batches.objectives import NextTokens
from training.batches.objectives import next_tokens

END = 0
CAUSAL = NextTokens(types.SimpleNamespace(end_token_id=END), 5)
ROWS = np.array(
    [[END, 5, 6, END, 7], [END, END, 8, 9, END], [END, 3, END, END, END]],
    "int32",
)


def test_labels_are_the_next_tokens():
    features, labels, weights = next_tokens(tf.constant(ROWS), END)
    np.testing.assert_array_equal(features["token_ids"], ROWS)
    np.testing.assert_array_equal(labels[:, :-1], ROWS[:, 1:])
    # The end of a document is predicted, also before and behind others; the
    # last row's two end tokens behind one are padding.
    np.testing.assert_array_equal(
        weights, [[1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [1, 1, 0, 0, 0]]
    )
    np.testing.assert_array_equal(
        features["padding_mask"],
        [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 0, 0]],
    )


def test_held_out_rows_come_once_in_order():
    (first, second) = CAUSAL.held_out_batches(ROWS, batch_size=2, seed=0)
    token_ids = tf.concat([first[0]["token_ids"], second[0]["token_ids"]], 0)
    np.testing.assert_array_equal(token_ids[:3], ROWS)
    np.testing.assert_array_equal(token_ids[3], np.full(5, END))
    assert second[2].shape == (2, 5)
    np.testing.assert_array_equal(second[2][1], np.zeros(5))


@pytest.mark.parametrize("first_step", [0, 3])
def test_training_rows_follow_from_the_step(first_step):
    rows = np.arange(1, 71, dtype="int32").reshape(7, 10)

    def read(**steps):
        batches = CAUSAL.training_batches(rows, batch_size=3, seed=1, **steps)
        return [batch[0]["token_ids"].numpy() for batch in batches]

    whole = read(num_steps=7)
    rest = read(first_step=first_step, num_steps=7 - first_step)
    np.testing.assert_array_equal(rest, whole[first_step:])
    # Seven batches of three are three epochs.
    firsts = np.concatenate(whole)[:, 0]
    for epoch in range(3):
        assert set(firsts[7 * epoch : 7 * epoch + 7]) == set(rows[:, 0])
