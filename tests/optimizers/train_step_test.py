"""Train steps: on two devices, on bad batches, without dense reads."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from keras_pkm.ops import mark_as_table
from keras_pkm.ops.tensorflow import cpu_row_update
from keras_pkm.ops.value_tables import is_table
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from tests.contracts import fresh_rng
from tests.graphs import tensors_with_rows
from tests.models.tiny import MEMORY
from tests.models.tiny import masked_batch
from tests.optimizers.fitted_models import compiled_task
from tests.optimizers.fitted_models import components
from tests.optimizers.fitted_models import fit
from tests.optimizers.fitted_models import float_batch
from tests.optimizers.fitted_models import memory_model
from tests.optimizers.fitted_models import states_after
from tests.slow_tier import slow_but

ROWS = MEMORY["num_sub_keys"] ** 2  # 121: no other dimension has this size


def slow(*values):
    """Graphs on two devices take seconds to trace: a few are enough."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.slow
def test_two_devices_train_as_one(mirrored):
    """Ragged padding, batch norm, sparse Adam and clipping; 5 steps.

    (In parts, too: `trainers/gradient_accumulation_test.py`.)
    """
    options = {"global_clipnorm": 0.05}
    rng = fresh_rng()
    batches = [masked_batch(rng) for _ in range(5)]
    one = compiled_task(tf.distribute.get_strategy(), **options)
    one.run_eagerly = True
    two = compiled_task(mirrored, **options)
    assert trained_alike(one, two, batches, 1e-5) > 25


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"clipnorm": 0.01, "reduction": "dense"},
        {"clipvalue": 1e-3, "weight_decay": 0.1},
    ],
)
def test_two_devices_train_a_memory_as_one(mirrored, options):
    rng = fresh_rng()
    batches = [float_batch(rng) for _ in range(5)]
    one = memory_model(tf.distribute.get_strategy(), **options)
    one.run_eagerly = True
    two = memory_model(mirrored, **options)
    # Its rate is ten times that of the task.
    assert trained_alike(one, two, batches, 1e-4) > 7


def trained_alike(one, two, batches, tolerance):
    """Returns how many weights of both moved, to the same values."""
    start = {w.path: np.array(w) for w in one.weights}
    fit(one, batches)
    fit(two, batches)
    moved = 0
    for expected, actual in zip(one.weights, two.weights):
        path = expected.path
        if "query_projection/bias" in path or "/key/bias" in path:
            continue  # no true gradient: Adam turns rounding into steps
        moved += not np.array_equal(start[path], expected)
        for component in components(actual):
            np.testing.assert_allclose(
                component, expected, atol=tolerance, err_msg=path
            )
    return moved


@pytest.mark.parametrize(
    "precision, wrap, replica, reduction",
    [
        slow("float32", None, 1, "sparse"),
        slow("mixed_bfloat16", None, 1, "dense"),
        slow("mixed_float16", LossScaleOptimizer, 1, "sparse"),
        # `compile` wraps any optimizer in this one under float16.
        slow("mixed_float16", keras.optimizers.LossScaleOptimizer, 0, "sparse"),
    ],
)
def test_nan_in_the_inputs_of_one_replica_changes_nothing(
    mirrored, precision, wrap, replica, reduction
):
    rng = fresh_rng()
    model = memory_model(mirrored, wrap, precision, reduction=reduction)
    before, after, later = states_after(
        model,
        [
            float_batch(rng),
            float_batch(rng, bad_example=4 * replica),
            float_batch(rng),
        ],
    )
    assert any("moving_mean" in path for path in before)
    assert_nothing_changed(before, after)
    (table,) = (w.path for w in model.weights if is_table(w))
    assert not np.array_equal(later[table], before[table])
    assert model.optimizer.iterations == 2
    for path, new in later.items():
        assert np.isfinite(new).all(), path
        np.testing.assert_array_equal(new, new[:1] * 2, err_msg=path)


def assert_nothing_changed(before, after):
    for path, old in before.items():
        # The loss scale reacts, as it should.
        if not path.endswith(("dynamic_scale", "step_counter")):
            np.testing.assert_array_equal(old, after[path], err_msg=path)


def watch_graphs(model):
    """Returns a list that will get the graphs of the model's train steps."""
    graphs = []
    train_step = model.train_step

    def watched(data):
        graphs.append(tf.compat.v1.get_default_graph())
        return train_step(data)

    model.train_step = watched
    return graphs


@pytest.mark.parametrize(
    "precision, devices, wrap",
    [
        slow("mixed_bfloat16", 1, None),
        slow("mixed_float16", 2, LossScaleOptimizer),
    ],
)
def test_train_step_of_a_task(mirrored, monkeypatch, precision, devices, wrap):
    """No op has the table's rows; a NaN loss changes no moving statistics."""
    # Else all of so small a table makes one block.
    monkeypatch.setattr(cpu_row_update, "_PART_FLOATS", 32)
    strategy = mirrored if devices == 2 else tf.distribute.get_strategy()
    task = compiled_task(
        strategy, wrap, precision, weight_decay=0.1, global_clipnorm=1.0
    )
    rng = fresh_rng()
    batches = [masked_batch(rng) for _ in range(3)]
    # The memories' inputs are fine: the NaN comes after them.
    batches[1][2][6, 1] = np.nan
    graphs = watch_graphs(task)
    before, after, later = states_after(task, batches)
    assert graphs
    assert not tensors_with_rows(graphs[-1], ROWS)
    assert_nothing_changed(before, after)
    mean = "transformer_layer_0_with_memory/memory/query_normalization/"
    mean = f"{mean}moving_mean"
    assert not np.array_equal(before[mean], later[mean])


@pytest.mark.parametrize("devices", slow_but(1, [1, 2]))
def test_a_planted_dense_read_is_found(mirrored, devices):
    class Planted(keras.layers.Layer):
        def build(self, shape):
            self.table = self.add_weight(shape=(ROWS, 3), autocast=False)
            mark_as_table(self.table)

        def call(self, inputs):
            return inputs + tf.reduce_sum(self.table * 1)

    strategy = mirrored if devices == 2 else tf.distribute.get_strategy()
    with strategy.scope():
        inputs = keras.Input((4,))
        model = keras.Model(inputs, Planted()(inputs))
        model.compile(PKMAdam(), "mse", jit_compile=False)
    graphs = watch_graphs(model)
    fit(model, [(np.ones((8, 4)), np.ones((8, 4)))])
    assert tensors_with_rows(graphs[-1], ROWS)


def test_unread_rows_stay_bit_for_bit():
    rng = fresh_rng()
    model = memory_model(tf.distribute.get_strategy(), global_clipnorm=1.0)
    optimizer = model.optimizer
    optimizer.build(model.trainable_variables)
    memory = next(
        layer
        for layer in model.layers
        if isinstance(layer, keras_pkm.layers.ProductKeyMemory)
    )
    tables = [memory.table.values] + [
        variable
        for variable in optimizer.variables
        if "table_values" in variable.name
    ]
    assert len(tables) == 3
    for table in tables:
        # Also moments other than zero, which stock Adam would act on.
        table.assign(rng.random(table.shape) + 0.1)
    for _ in range(5):
        (inputs, mask), target = float_batch(rng)
        before = [np.array(table) for table in tables]
        _, (slots, _) = memory(
            model.layers[1](inputs),
            mask=mask,
            training=True,
            return_memory_access=True,
        )
        read = set(slots.numpy()[mask == 1].ravel())
        fit(model, [((inputs, mask), target)])
        for table, old in zip(tables, before):
            changed = set(np.flatnonzero((np.array(table) != old).any(-1)))
            assert changed == read
            assert len(read) < ROWS
