import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.ops.tensorflow.sorted_rows import deduplicate
from keras_pkm.ops.tensorflow.sorted_rows import sort_rows


@pytest.mark.parametrize(
    "rows", [[], [3], [5, 1, 5, 0, 1, 5], [2, 4, 7], [4, 4], [7, 4, 2]]
)
def test_each_row_once_ascending(rows):
    values = np.arange(2.0 * len(rows)).reshape(-1, 2)
    slices = tf.IndexedSlices(
        tf.constant(values),
        tf.constant(rows, "int32"),
        tf.constant([8, 2]),
    )
    merged = deduplicate(slices)
    expected = np.zeros((8, 2))
    np.add.at(expected, np.array(rows, "int32"), values)
    assert merged.indices.numpy().tolist() == sorted(set(rows))
    np.testing.assert_array_equal(merged.values, expected[sorted(set(rows))])


def test_order_and_segments():
    rows, segments, order = sort_rows(tf.constant([5, 1, 5, 0]))
    assert rows.numpy().tolist() == [0, 1, 5]
    assert order.numpy().tolist() == [3, 1, 0, 2]
    assert segments.numpy().tolist() == [0, 1, 2, 2]
