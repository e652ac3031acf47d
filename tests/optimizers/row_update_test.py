import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.ops.tensorflow import cpu_row_update
from keras_pkm.ops.tensorflow.row_update import update_rows


@pytest.mark.parametrize("part_floats", [1, 6, 10, 1000])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_each_read_row_once(monkeypatch, part_floats, compiled, index_dtype):
    monkeypatch.setattr(cpu_row_update, "_PART_FLOATS", part_floats)
    monkeypatch.setattr(cpu_row_update, "_PARTS", 2)
    variables = tuple(tf.Variable(tf.zeros((24, 2))) for _ in range(2))

    def update(gradient, first, second):
        return first + 2 * gradient, second + first

    def run(gradients, rows):
        gradient = tf.IndexedSlices(gradients, rows, tf.constant([24, 2]))
        update_rows(variables, gradient, update)

    if compiled:
        specs = tf.TensorSpec((None, 2)), tf.TensorSpec((None,), index_dtype)
        run = tf.function(run, input_signature=specs)

    for num_rows in (0, 1, 5, 6, 7, 12, 13, 24):
        rng = np.random.default_rng(num_rows)
        rows = np.sort(rng.permutation(24)[:num_rows])
        gradients = rng.normal(size=(num_rows, 2)).astype("float32")
        gradients[::3, 0] = 0
        gradients[::3, 1] *= np.arange(len(gradients[::3])) % 2
        read = rows[gradients.any(axis=1)]
        tables = [rng.normal(size=(24, 2)).astype("float32") for _ in range(2)]
        for variable, table in zip(variables, tables):
            variable.assign(table)
        run(tf.constant(gradients), tf.constant(rows, index_dtype))
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
        update_rows((table,), gradient, lambda gradient, row: (row + 1,))

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
