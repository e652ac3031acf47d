import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.optimizers import cpu_row_update
from keras_pkm.optimizers.row_update import update_read_rows


@pytest.mark.parametrize("num_rows", [0, 1, 5, 6, 7, 12, 13, 24])
@pytest.mark.parametrize("part_floats", [1, 6, 10, 1000])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_each_read_row_once(
    monkeypatch, num_rows, part_floats, compiled, index_dtype
):
    monkeypatch.setattr(cpu_row_update, "_PART_FLOATS", part_floats)
    monkeypatch.setattr(cpu_row_update, "_PARTS", 2)
    rng = np.random.default_rng(num_rows)
    rows = np.sort(rng.permutation(24)[:num_rows])
    gradients = rng.normal(size=(num_rows, 2)).astype("float32")
    gradients[::3, 0] = 0
    gradients[::3, 1] *= np.arange(len(gradients[::3])) % 2
    read = rows[gradients.any(axis=1)]
    tables = [rng.normal(size=(24, 2)).astype("float32") for _ in range(2)]
    variables = tuple(tf.Variable(table) for table in tables)

    def update(gradient, first, second):
        return first + 2 * gradient, second + first

    def run():
        gradient = tf.IndexedSlices(
            tf.constant(gradients),
            tf.constant(rows, index_dtype),
            tf.constant([24, 2]),
        )
        update_read_rows(variables, gradient, update)

    tf.function(run)() if compiled else run()
    dense = np.zeros((24, 2), "float32")
    dense[rows] = gradients
    np.testing.assert_allclose(
        variables[0], tables[0] + 2 * dense, rtol=1e-6, atol=0
    )
    # Rows that were read, once each; another second time would add more.
    tables[1][read] += tables[0][read]
    np.testing.assert_array_equal(variables[1], tables[1])


def test_tables_are_updated_in_place():
    table = tf.Variable(tf.zeros((64, 3)))
    gradient = tf.IndexedSlices(
        tf.ones((2, 3)), tf.constant([1, 5]), tf.constant([64, 3])
    )

    @tf.function
    def run():
        update_read_rows((table,), gradient, lambda gradient, row: (row + 1,))

    def address():
        return np.asarray(table.read_value_no_copy()).ctypes.data

    run()
    before = address()
    run()
    assert address() == before
    # Who still holds the old values keeps them: then it has to be a copy.
    held = table.read_value_no_copy()
    run()
    assert address() != before
    assert held[5, 0] == 2
    assert table[5, 0] == 3
