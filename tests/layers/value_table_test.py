"""Reads of a table, and a table that two memories share."""

import keras
import numpy as np
import pytest

from keras_pkm.layers import MemoryBlock
from keras_pkm.layers import ProductKeyMemory
from keras_pkm.layers import ValueTable
from keras_pkm.layers.memories import memories
from keras_pkm.layers.memories import tables
from keras_pkm.models import MemoryProbe
from keras_pkm.ops.value_tables import is_table
from keras_pkm.optimizers import PKMAdam
from keras_pkm.teaching import MemoryTeacher
from tests.contracts import check_config_round_trip
from tests.contracts import fixed_rng
from tests.contracts import to_numpy
from tests.slow_tier import slow_on_tensorflow

SMALL = {
    "num_sub_keys": 4,
    "num_heads": 2,
    "top_k": 2,
    "key_dim": 4,
    # Training reads what inference reads.
    "query_normalization": None,
}


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "float64"])
def test_reads_are_weighted_sums(dtype):
    rng = fixed_rng()
    table = ValueTable(10, 3, dtype=dtype)
    table.build()
    assert is_table(table.values) and table.values.dtype == "float32"
    slots = rng.integers(0, 10, (5, 2, 4)).astype("int32")
    weights = rng.random((5, 2, 4)).astype("float32")
    expected = np.einsum(
        "thk,thkw->thw", weights, to_numpy(table.values)[slots]
    )
    inputs = [
        keras.KerasTensor(slots.shape, "int32"),
        keras.KerasTensor(slots.shape),
    ]
    for per_head, sums in ((True, expected), (False, expected.sum(1))):
        actual = table(slots, weights, per_head=per_head)
        np.testing.assert_allclose(to_numpy(actual), sums, rtol=1e-5, atol=1e-6)
        spec = table.compute_output_spec(*inputs, per_head=per_head)
        assert (spec.shape, spec.dtype) == (actual.shape, "float32")


def test_arguments_are_attributes():
    table = ValueTable(4, 2, "zeros", "l2", "non_neg")
    copy = check_config_round_trip(table)
    copy.build()
    assert not to_numpy(copy.values).any()
    assert copy.values.regularizer.l2 == pytest.approx(0.01)
    for name in ("num_slots", "value_dim"):
        with pytest.raises(ValueError, match=f"`{name}` must be a positive"):
            ValueTable(**{"num_slots": 4, "value_dim": 2, name: 0})


def shared_model():
    table = ValueTable(16, 6, name="shared")
    x = inputs = keras.Input((6,))
    for number in (1, 2):
        name = f"memory_{number}"
        x = x + ProductKeyMemory(**SMALL, table=table, name=name)(x)
    model = keras.Model(inputs, x)
    return model, table


@slow_on_tensorflow
def test_a_shared_table_counts_once(tmp_path):
    model, table = shared_model()
    assert tables(model) == {1: table}
    first, second = memories(model).values()
    assert first.table is second.table is table
    assert sum(is_table(variable) for variable in model.variables) == 1
    x, y = fixed_rng().normal(size=(2, 8, 6)).astype("float32")
    model.compile(PKMAdam(1e-3, 0.1), "mse")
    before = table.values.numpy()
    (counts,) = MemoryProbe(model).count_each([(x,)])
    model.fit(x, y, verbose=0, shuffle=False)
    changed = (table.values.numpy() != before).any(axis=1)
    read = (counts[1]["reads"] + counts[2]["reads"]) > 0
    np.testing.assert_array_equal(changed, read)

    start = table.values.numpy()
    teacher = MemoryTeacher(model, learning_rate=0.1)
    teacher.teach([(x, y)], steps=2)
    patch = teacher.make_patch()
    assert patch.num_slots == {1: 16} and patch.num_rows > 0
    patch.revert(model)
    np.testing.assert_array_equal(table.values, start)

    model.save_weights(tmp_path / "model.weights.h5")
    rebuilt, _ = shared_model()
    rebuilt.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(to_numpy(rebuilt(x)), to_numpy(model(x)))


def test_a_shared_table_is_not_lost_without_a_word(tmp_path):
    model, table = shared_model()
    for copy in (
        lambda: model.save(tmp_path / "model.keras"),
        lambda: keras.models.clone_model(model),
        lambda: MemoryBlock(
            keras.layers.Dense(6), ProductKeyMemory(**SMALL, table=table)
        ),
    ):
        with pytest.raises(ValueError, match="`load_weights`"):
            copy()


def test_a_table_of_another_size_is_refused():
    for table in (ValueTable(15, 6), ValueTable(16, 5)):
        with pytest.raises(ValueError, match="`table` must have the `num"):
            ProductKeyMemory(**SMALL, table=table).build((None, 6))
