import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.optimizers import row_sparse
from keras_pkm.optimizers.row_sparse import for_read_rows


@pytest.mark.parametrize("part_floats", [1, 4, 6, 1000])
@pytest.mark.parametrize("compiled", [False, True])
def test_all_read_rows_in_parts(monkeypatch, part_floats, compiled):
    monkeypatch.setattr(row_sparse, "_PART_FLOATS", part_floats)
    values = np.array([[1, 0], [0, 0], [2, 3], [0, 4], [0, 0]], "float32")
    rows = np.array([1, 3, 4, 6, 7], "int32")
    sums = tf.Variable(tf.zeros((8, 2)))
    calls = tf.Variable(tf.zeros((8,)))

    def update(rows, values):
        sums.scatter_add(tf.IndexedSlices(values, rows))
        ones = tf.ones_like(rows, "float32")
        calls.scatter_add(tf.IndexedSlices(ones, rows))

    def run():
        gradient = tf.IndexedSlices(
            tf.constant(values), tf.constant(rows), tf.constant([8, 2])
        )
        for_read_rows(gradient, update)

    tf.function(run)() if compiled else run()
    expected = np.zeros((8, 2))
    expected[rows] = values
    np.testing.assert_array_equal(sums, expected)
    # Rows 3 and 7 were not read: their gradients are zero.
    np.testing.assert_array_equal(calls, [0, 1, 0, 0, 1, 0, 1, 0])
