"""Train steps: on two devices, on bad batches, without dense reads."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from keras_pkm.optimizers import cpu_row_update
from tests.contracts import fresh_rng
from tests.graphs import tensors_with_rows
from tests.models.tiny import MEMORY
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_masked_lm

ROWS = MEMORY["num_sub_keys"] ** 2  # 121: no other dimension has this size


def compiled_task(strategy, wrap=None, precision="float32", **options):
    keras.utils.set_random_seed(1)
    with strategy.scope():
        task = tiny_masked_lm(dtype=precision, num_layers=2, memory_layers=(1,))
        task.backbone.pooled_dense.trainable = False
        optimizer = PKMAdam(1e-3, 1e-2, **options)
        task.compile(wrap(optimizer) if wrap else optimizer)
    return task


def fit(task, batches):
    """One step for each batch; all replicas share one."""
    data = [tf.data.Dataset.from_tensors(batch) for batch in batches]
    whole = data[0]
    for more in data[1:]:
        whole = whole.concatenate(more)
    task.fit(whole, shuffle=False, verbose=0)


def components(variable):
    """The values of a variable on all replicas."""
    value = variable.value
    if isinstance(value, tf.distribute.DistributedValues):
        return [component.numpy() for component in value.values]
    return [value.numpy()]


def state(task):
    """All replicas' values of all variables of model and optimizer."""
    return {
        variable.path: components(variable)
        for variable in [*task.weights, *task.optimizer.variables]
    }


@pytest.mark.parametrize(
    "options",
    [
        {"global_clipnorm": 0.05},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param(
            {"clipnorm": 0.01, "reduction": "dense"}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"clipvalue": 1e-3, "weight_decay": 0.1}, marks=pytest.mark.slow
        ),
    ],
)
def test_two_devices_train_as_one(mirrored, options):
    """Ragged padding, batch norm, sparse Adam and clipping; 5 steps."""
    rng = fresh_rng()
    batches = [masked_batch(rng) for _ in range(5)]
    one = compiled_task(tf.distribute.get_strategy(), **options)
    two = compiled_task(mirrored, **options)
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
                component, expected, atol=1e-5, err_msg=path
            )
    assert moved > 40


def memory_model(strategy, wrap=None, precision="float32", **options):
    """Dense, memory, dense: with float inputs, which may hold NaN."""
    keras.utils.set_random_seed(1)
    with strategy.scope():
        inputs = keras.Input((6, 5))
        mask = keras.Input((6,), dtype="int32")
        x = keras.layers.Dense(8, dtype=precision)(inputs)
        memory = keras_pkm.layers.ProductKeyMemory(**MEMORY, dtype=precision)
        x = keras.layers.LayerNormalization(dtype=precision)(
            x + memory(x, padding_mask=mask)
        )
        outputs = keras.layers.Dense(3, dtype=precision)(x)
        model = keras.Model([inputs, mask], outputs)
        optimizer = PKMAdam(0.01, 0.01, weight_decay=0.1, **options)
        model.compile(
            wrap(optimizer) if wrap else optimizer, "mse", jit_compile=False
        )
    return model


def float_batch(rng, bad_example=None):
    inputs = rng.normal(size=(8, 6, 5)).astype("float32")
    if bad_example is not None:
        inputs[bad_example, 0, 2] = np.nan
    mask = (np.arange(6) < rng.integers(1, 7, (8, 1))).astype("int32")
    target = rng.normal(size=(8, 6, 3)).astype("float32")
    return (inputs, mask), target


@pytest.mark.parametrize(
    "precision, wrap, replica, reduction",
    [
        ("float32", None, 1, "sparse"),
        ("float32", None, 0, "dense"),
        ("mixed_bfloat16", None, 1, "dense"),
        ("mixed_float16", LossScaleOptimizer, 1, "sparse"),
        # `compile` wraps any optimizer in this one under float16.
        ("mixed_float16", keras.optimizers.LossScaleOptimizer, 0, "sparse"),
        ("mixed_float16", keras.optimizers.LossScaleOptimizer, 1, "sparse"),
    ],
)
def test_nan_in_the_inputs_of_one_replica_changes_nothing(
    mirrored, precision, wrap, replica, reduction
):
    rng = fresh_rng()
    model = memory_model(mirrored, wrap, precision, reduction=reduction)
    fit(model, [float_batch(rng)])
    before = state(model)
    assert any("moving_mean" in path for path in before)
    fit(model, [float_batch(rng, bad_example=4 * replica)])
    after = state(model)
    for path, old in before.items():
        # The loss scale reacts, as it should.
        if not path.endswith(("dynamic_scale", "step_counter")):
            np.testing.assert_array_equal(old, after[path], err_msg=path)
    assert model.optimizer.iterations == 1

    fit(model, [float_batch(rng)])
    assert model.optimizer.iterations == 2
    for path, new in state(model).items():
        assert np.isfinite(new).all(), path
        np.testing.assert_array_equal(new, new[:1] * 2, err_msg=path)
    table = next(w for w in model.weights if w.name == "memory_values")
    assert not np.array_equal(components(table), before[table.path])


@pytest.mark.parametrize(
    "precision",
    ["mixed_float16", pytest.param("float32", marks=pytest.mark.slow)],
)
def test_a_nan_loss_leaves_a_task_s_moving_statistics(mirrored, precision):
    """The memories' inputs are fine: the NaN comes after them."""
    rng = fresh_rng()
    task = compiled_task(mirrored, LossScaleOptimizer, precision)
    fit(task, [masked_batch(rng)])
    before = state(task)
    assert any("moving_mean" in path for path in before)
    features, labels, weights = masked_batch(rng)
    weights[6, 1] = np.nan
    fit(task, [(features, labels, weights)])
    after = state(task)
    for path, old in before.items():
        if not path.endswith(("dynamic_scale", "step_counter")):
            np.testing.assert_array_equal(old, after[path], err_msg=path)
    fit(task, [masked_batch(rng)])
    moved = "transformer_layer_0/product_key_memory/query_normalization/"
    after = state(task)[f"{moved}moving_mean"]
    assert not np.array_equal(before[f"{moved}moving_mean"], after)


def fitted_graph(model, batch):
    """Fits a batch, and returns the graph of the train step on all devices."""
    graphs = []
    train_step = model.train_step

    def watched(data):
        graphs.append(tf.compat.v1.get_default_graph())
        return train_step(data)

    model.train_step = watched
    fit(model, [batch])
    return graphs[-1]


@pytest.mark.parametrize(
    "precision, devices, wrap",
    [
        ("mixed_bfloat16", 1, None),
        pytest.param("float32", 1, None, marks=pytest.mark.slow),
        pytest.param("float32", 2, None, marks=pytest.mark.slow),
        pytest.param(
            *("mixed_float16", 2, LossScaleOptimizer), marks=pytest.mark.slow
        ),
    ],
)
def test_no_op_of_the_train_step_has_the_table_s_rows(
    mirrored, monkeypatch, precision, devices, wrap
):
    # Else all of so small a table makes one block.
    monkeypatch.setattr(cpu_row_update, "_PART_FLOATS", 32)
    strategy = mirrored if devices == 2 else tf.distribute.get_strategy()
    task = compiled_task(
        strategy, wrap, precision, weight_decay=0.1, global_clipnorm=1.0
    )
    graph = fitted_graph(task, masked_batch(fresh_rng()))
    assert not tensors_with_rows(graph, ROWS)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_planted_dense_read_is_found(mirrored, devices):
    class Planted(keras.layers.Layer):
        def build(self, shape):
            self.table = self.add_weight(
                shape=(ROWS, 3), name="memory_values", autocast=False
            )

        def call(self, inputs):
            return inputs + tf.reduce_sum(self.table * 1)

    strategy = mirrored if devices == 2 else tf.distribute.get_strategy()
    with strategy.scope():
        inputs = keras.Input((4,))
        model = keras.Model(inputs, Planted()(inputs))
        model.compile(PKMAdam(), "mse", jit_compile=False)
    graph = fitted_graph(model, (np.ones((8, 4)), np.ones((8, 4))))
    assert tensors_with_rows(graph, ROWS)


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
    tables = [memory.memory_values] + [
        variable
        for variable in optimizer.variables
        if "memory_values" in variable.name
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
            padding_mask=mask,
            training=True,
            return_memory_access=True,
        )
        read = set(slots.numpy()[mask == 1].ravel())
        fit(model, [((inputs, mask), target)])
        for table, old in zip(tables, before):
            changed = set(np.flatnonzero((np.array(table) != old).any(-1)))
            assert changed == read
            assert len(read) < ROWS
