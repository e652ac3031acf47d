"""Value tables: what is stored, and what is read."""

import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.export.smaller import kept_slots
from keras_pkm.export.value_tables import ValueTable


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 8)).astype("float32")
    rows[7] = 0
    rows[8] *= 1e-4
    rows[9] *= 1e4
    return tf.Variable(rows)


def test_float32_is_the_variable_itself(values):
    table = ValueTable(values)
    assert table.variables[0] is values
    assert table.trainable_variables == [values]
    assert table.size == 50 * 8 * 4


@pytest.mark.parametrize(
    "dtype, size, error",
    [("bfloat16", 50 * 8 * 2, 2**-8), ("int8", 50 * (8 + 4), 0.5 / 127)],
)
def test_rounding(values, dtype, size, error):
    """Half of the last bit of a row's largest entry, at the most."""
    table = ValueTable(values, dtype)
    assert table.size == size
    slots = tf.constant([[3, 7, 8], [9, 49, 3]])
    read = table.read(slots)
    expected = values.numpy()[slots.numpy()]
    assert read.dtype == "float32"
    largest = np.abs(expected).max(-1, keepdims=True)
    assert (np.abs(read - expected) <= 1.001 * error * largest).all()
    # Not all is exact, and rows of zeros are.
    assert np.abs(read - expected).max() > 0
    assert (read[0, 1].numpy() == 0).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_pruned(values, dtype):
    kept = np.zeros(50, bool)
    kept[[3, 9, 49]] = True
    table = ValueTable(values, dtype, kept)
    assert (table.num_slots, table.num_rows, table.width) == (50, 4, 8)
    whole = ValueTable(values, dtype)
    slots = tf.range(50)
    np.testing.assert_array_equal(
        table.read(slots), whole.read(slots) * kept[:, None]
    )


def test_gradients_are_row_sparse(values):
    kept = np.arange(50) < 30
    for table in (ValueTable(values), ValueTable(values, kept=kept)):
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(table.read(tf.constant([1, 2])))
        gradient = tape.gradient(total, table.trainable_variables[0])
        assert isinstance(gradient, tf.IndexedSlices)
        assert gradient.indices.numpy().tolist() == [1, 2]
    for dtype in ("bfloat16", "int8"):
        assert ValueTable(values, dtype).trainable_variables == []


def test_kept_slots():
    mass = np.array([0.0, 5.0, 1.0, 0.0, 4.0])
    assert kept_slots(mass).tolist() == [False, True, True, False, True]
    assert kept_slots(mass, 90).tolist() == [False, True, False, False, True]
    assert kept_slots(mass, 50).tolist() == [False, True, False, False, False]
    assert kept_slots(mass, 51).sum() == 2
    assert not kept_slots(np.zeros(5)).any()
    # One that was read little is among all that were read.
    assert kept_slots(np.array([1e8, 1e-9, 0])).tolist() == [True, True, False]
