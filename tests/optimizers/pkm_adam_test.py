import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.optimizers import LinearWarmup
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from tests.contracts import check_config_round_trip
from tests.contracts import fresh_rng


def table(values):
    values = np.asarray(values, "float32")
    return keras.Variable(values, name="memory_values", autocast=False)


def slices(rows, values, shape):
    return tf.IndexedSlices(
        tf.constant(values, "float32"),
        tf.constant(rows, "int32"),
        tf.constant(shape),
    )


@pytest.mark.parametrize("compiled", [False, True])
def test_two_steps_by_hand(compiled):
    """Step 1 reads rows 0 (twice) and 2; step 2 reads row 2; row 1 never."""
    values = table([[1, 2], [3, 4], [5, 6]])
    optimizer = PKMAdam(1.0, 0.1, beta_1=0.8, beta_2=0.9, epsilon=1e-3)
    optimizer.build([values])
    apply = optimizer.apply
    if compiled:
        apply = tf.function(apply)
    apply([slices([0, 2, 0], [[1, 0], [2, -2], [3, 1]], (3, 2))])
    apply([slices([2], [[1, 4]], (3, 2))])

    def alpha(t):
        return 0.1 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t)

    # Row 0: the gradients of both reads are summed, then squared: 4² + 1².
    m0, v0 = 0.2 * np.array([4.0, 1]), 0.1 * np.array([16.0, 1])
    row0 = np.array([1.0, 2]) - alpha(1) * m0 / (np.sqrt(v0) + 1e-3)
    m2, v2 = 0.2 * np.array([2.0, -2]), 0.1 * np.array([4.0, 4])
    row2 = np.array([5.0, 6]) - alpha(1) * m2 / (np.sqrt(v2) + 1e-3)
    m2 = 0.8 * m2 + 0.2 * np.array([1.0, 4])
    v2 = 0.9 * v2 + 0.1 * np.array([1.0, 16])
    row2 -= alpha(2) * m2 / (np.sqrt(v2) + 1e-3)

    np.testing.assert_allclose(values[0], row0, rtol=1e-6)
    np.testing.assert_allclose(values[2], row2, rtol=1e-6)
    np.testing.assert_array_equal(values[1], [3, 4])
    momentum, velocity = optimizer._momentums[0], optimizer._velocities[0]
    np.testing.assert_allclose(momentum, [m0, [0, 0], m2], rtol=1e-6)
    np.testing.assert_allclose(velocity, [v0, [0, 0], v2], rtol=1e-6)
    assert optimizer.iterations == 2


@pytest.mark.parametrize("dense", [False, True])
def test_a_row_with_an_all_zero_gradient_is_unread(dense):
    values = table(np.ones((4, 3)))
    optimizer = PKMAdam(1.0, 0.1)
    optimizer.build([values])
    first = slices([0, 1], np.ones((2, 3)), (4, 3))
    # Row 1: zero. Row 2: the two reads cancel. Row 3: one entry is not zero.
    second = slices(
        [1, 2, 2, 3], [[0, 0, 0], [1, 1, 1], [-1, -1, -1], [0, 1, 0]], (4, 3)
    )
    optimizer.apply([tf.convert_to_tensor(first) if dense else first])
    before = [np.array(v) for v in optimizer.variables[2:]] + [np.array(values)]
    optimizer.apply([tf.convert_to_tensor(second) if dense else second])
    after = [np.array(v) for v in optimizer.variables[2:]] + [np.array(values)]
    changed = {
        tuple(row)
        for old, new in zip(before, after)
        if old.shape == (4, 3)
        for row in np.argwhere((old != new).any(-1))
    }
    assert changed == {(3,)}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"clipnorm": 0.5},
        {"global_clipnorm": 0.5},
        {"clipvalue": 0.01},
        {"beta_1": 0.5, "beta_2": 0.7, "epsilon": 1e-3},
    ],
)
def test_all_else_is_stock_adam(options):
    rng = fresh_rng()
    start = [rng.normal(size=s).astype("float32") for s in [(5, 3), (7,), ()]]
    schedule = LinearWarmup(1e-2, 2, 10)
    results = []
    for optimizer in (
        PKMAdam(schedule, memory_pattern=None, **options),
        keras.optimizers.Adam(schedule, **options),
    ):
        variables = [keras.Variable(value) for value in start]
        optimizer.build(variables)
        gradient_rng = np.random.default_rng(5)
        for _ in range(4):
            optimizer.apply(
                [
                    tf.constant(gradient_rng.normal(size=v.shape), "float32")
                    for v in variables
                ]
            )
        results.append([np.array(v) for v in variables])
    for actual, expected in zip(*results):
        if "global_clipnorm" in options:
            np.testing.assert_allclose(actual, expected, rtol=1e-6)
        else:
            np.testing.assert_array_equal(actual, expected)


def test_slices_of_other_variables_are_summed_first():
    """As an embedding's: stock Adam takes v wrong where an index repeats."""
    embeddings = [keras.Variable(np.ones((3, 2)), name="e") for _ in range(2)]
    gradient = slices([1, 1], [[1, 2], [3, 4]], (3, 2))
    PKMAdam(0.1, memory_pattern=None).apply([gradient], embeddings[:1])
    keras.optimizers.Adam(0.1).apply(
        [tf.convert_to_tensor(gradient)], embeddings[1:]
    )
    np.testing.assert_array_equal(*embeddings)


def test_weight_decay_spares_tables_biases_and_norms():
    layer = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(4),
            keras.layers.LayerNormalization(),
            keras.layers.BatchNormalization(),
        ]
    )
    for weight in layer.weights:
        weight.assign(np.full(weight.shape, 2.0))
    values = table(np.full((3, 4), 2.0))
    variables = [*layer.trainable_variables, values]
    results = []
    for weight_decay in (None, 0.1):
        for variable in variables:
            variable.assign(np.full(variable.shape, 2.0))
        optimizer = PKMAdam(0.5, 0.5, weight_decay=weight_decay)
        gradients = [tf.ones(v.shape) for v in variables]
        optimizer.apply(gradients, variables)
        results.append([np.array(v) for v in variables])
    for variable, without, decayed in zip(variables, *results):
        if variable.name == "kernel":
            # Decoupled: rate · decay · value, whatever the gradient.
            np.testing.assert_allclose(
                without - decayed, 0.5 * 0.1 * 2.0, rtol=1e-5
            )
        else:
            np.testing.assert_array_equal(without, decayed)


def test_equals_adamw_where_it_decays():
    start = np.random.default_rng(1).normal(size=(4, 3)).astype("float32")
    results = []
    for optimizer in (
        PKMAdam(0.1, weight_decay=0.2, memory_pattern=None),
        keras.optimizers.AdamW(0.1, weight_decay=0.2),
    ):
        kernel = keras.Variable(start, name="kernel")
        for _ in range(3):
            optimizer.apply([tf.cos(kernel.value)], [kernel])
        results.append(np.array(kernel))
    np.testing.assert_allclose(*results, rtol=1e-6)


@pytest.mark.parametrize("clip", ["clipnorm", "clipvalue", "global_clipnorm"])
def test_clips_after_repeated_rows_are_summed(clip):
    """Sparse with repeats and dense gradients must end the same."""
    rng = fresh_rng()
    rows = rng.integers(0, 4, 9)
    values = rng.normal(size=(9, 3))
    dense_gradient = np.zeros((6, 3))
    np.add.at(dense_gradient, rows, values)
    kernel_gradient = tf.constant(rng.normal(size=(2, 2)), "float32")
    results = []
    for gradient in (
        slices(rows, values, (6, 3)),
        tf.constant(dense_gradient, "float32"),
    ):
        variables = [table(np.ones((6, 3))), keras.Variable(np.ones((2, 2)))]
        optimizer = PKMAdam(0.1, 0.1, epsilon=1.0, **{clip: 0.7})
        optimizer.apply([gradient, kernel_gradient], variables)
        results.append([np.array(v) for v in variables])
    for sparse, dense in zip(*results):
        np.testing.assert_allclose(sparse, dense, rtol=1e-5)
    unclipped = [table(np.ones((6, 3))), keras.Variable(np.ones((2, 2)))]
    PKMAdam(0.1, 0.1, epsilon=1.0).apply([gradient, kernel_gradient], unclipped)
    assert not np.allclose(unclipped[0], results[0][0], rtol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["table", "kernel"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_bad_step_is_skipped_and_training_goes_on(bad, where, compiled):
    variables = [table(np.ones((4, 2))), keras.Variable(np.ones(3), name="k")]
    optimizer = PKMAdam(0.1, 0.1, weight_decay=0.1, global_clipnorm=1.0)
    optimizer.build(variables)
    apply = tf.function(optimizer.apply) if compiled else optimizer.apply
    good = [slices([1], [[1, 1]], (4, 2)), tf.ones(3)]
    apply(good)
    watched = [*variables, *optimizer.variables]
    before = [np.array(v) for v in watched]
    worse = {
        "table": [slices([0, 1], [[1, 1], [1, bad]], (4, 2)), tf.ones(3)],
        "kernel": [good[0], tf.constant([1, bad, 1])],
    }
    apply(worse[where])
    for old, variable in zip(before, watched):
        np.testing.assert_array_equal(old, variable)
    apply(good)
    assert optimizer.iterations == 2
    assert not np.array_equal(before[0], variables[0])


def test_rates_of_their_own():
    variables = [table(np.zeros((2, 1))), keras.Variable(np.zeros(1))]
    optimizer = PKMAdam(
        0.5, LinearWarmup(1.0, 0, 4), epsilon=1e-12, beta_1=0.0, beta_2=0.0
    )
    moved = []
    for _ in range(3):
        before = [np.array(v) for v in variables]
        optimizer.apply([slices([0], [[1]], (2, 1)), tf.ones(1)], variables)
        moved.append(
            [
                b[0].item() - np.array(v)[0].item()
                for b, v in zip(before, variables)
            ]
        )
    np.testing.assert_allclose(moved, [[1, 0.5], [0.75, 0.5], [0.5, 0.5]])
    with pytest.raises(TypeError, match="is a schedule"):
        optimizer.memory_learning_rate = 0.1
    constant = PKMAdam(0.5, 0.25)
    constant.memory_learning_rate = 0.125
    assert constant.memory_learning_rate == 0.125


def test_groups_are_logged_once(caplog):
    kernel = keras.Variable(np.ones((2, 3)), name="kernel")
    bias = keras.Variable(np.ones(3), name="bias")
    variables = [table(np.ones((5, 4))), kernel, bias]
    optimizer = PKMAdam(weight_decay=0.1)
    with caplog.at_level(logging.INFO, "keras_pkm"):
        optimizer.build(variables)
        optimizer.build(variables)
    assert caplog.messages == [
        "PKMAdam: 1 variables, 20 parameters: memory",
        "PKMAdam: 1 variables, 6 parameters: decayed",
        "PKMAdam: 1 variables, 3 parameters: not decayed",
    ]


def test_a_pattern_that_matches_nothing_is_an_error():
    kernel = keras.Variable(np.ones((2, 3)), name="kernel")
    with pytest.raises(ValueError, match="`memory_pattern=None`"):
        PKMAdam().build([kernel])
    PKMAdam(memory_pattern=None).build([kernel])
    with pytest.raises(ValueError, match="matches none of 1"):
        PKMAdam(memory_pattern="tables").build([table(np.ones((2, 2)))])


@pytest.mark.parametrize("memory_rate", [2e-3, LinearWarmup(1e-3, 2, 20)])
def test_config(memory_rate):
    optimizer = PKMAdam(
        LinearWarmup(1e-4, 1, 10),
        memory_rate,
        beta_1=0.8,
        beta_2=0.99,
        epsilon=1e-6,
        weight_decay=0.01,
        global_clipnorm=2.0,
        memory_pattern="values",
        reduction="dense",
        name="adam",
    )
    copy = check_config_round_trip(optimizer)
    copy.build([keras.Variable(np.ones((2, 2)), name="values")])
    assert float(copy.memory_learning_rate) == float(
        optimizer.memory_learning_rate
    )
    whole = keras.saving.serialize_keras_object(optimizer)
    assert isinstance(keras.saving.deserialize_keras_object(whole), PKMAdam)
    wrapped = check_config_round_trip(LossScaleOptimizer(PKMAdam()))
    assert isinstance(wrapped.inner_optimizer, PKMAdam)


def test_impossible_arguments():
    with pytest.raises(ValueError, match='`reduction` must be "sparse" or'):
        PKMAdam(reduction="mean")
    with pytest.raises(ValueError, match="`memory_learning_rate` must be"):
        PKMAdam(memory_learning_rate="fast")
    with pytest.raises(ValueError, match="Only one of `clipnorm`"):
        PKMAdam(clipnorm=1.0, clipvalue=1.0)
    with pytest.raises(TypeError, match="use_ema"):
        PKMAdam(use_ema=True)


def test_loss_scale_falls_on_bad_gradients():
    values = table(np.ones((4, 2)))
    optimizer = LossScaleOptimizer(PKMAdam(0.1, 0.1), initial_scale=8.0)
    optimizer.build([values])
    optimizer.apply([slices([1], [[8, 8]], (4, 2))])
    assert optimizer.dynamic_scale == 8.0
    moved = np.array(values)
    assert np.argwhere((moved != 1).any(-1)).tolist() == [[1]]
    optimizer.apply([slices([1], [[8, np.inf]], (4, 2))])
    assert optimizer.dynamic_scale == 4.0
    np.testing.assert_array_equal(moved, values)
