"""Which variables have which rate and decay, and what a config holds."""

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.optimizers import LinearWarmup
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from tests.contracts import check_config_round_trip
from tests.optimizers.row_sparse import slices
from tests.optimizers.row_sparse import table


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


@pytest.mark.parametrize(
    "excluded", [{}, {"var_names": ["second"]}, {"var_list": ["second"]}]
)
def test_more_variables_can_be_excluded_from_decay(excluded):
    """Those that never decay are excluded besides."""
    kernels = [keras.Variable([[2.0]], name=n) for n in ("first", "second")]
    # Of attention heads; of a language model's output; of an RMS norm.
    others = [
        keras.Variable([[2.0]], name="bias"),
        keras.Variable([[2.0]], name="output_bias"),
        keras.Variable([2.0], name="scale"),
    ]
    variables = [*kernels, *others]
    optimizer = PKMAdam(weight_decay=0.1)
    optimizer = PKMAdam.from_config(optimizer.get_config())
    if "var_list" in excluded:
        excluded = {"var_list": kernels[1:]}
    if excluded:
        optimizer.exclude_from_weight_decay(**excluded)
    optimizer.apply([tf.zeros(v.shape) for v in variables], variables)
    decayed = [float(v.numpy().item()) < 2.0 for v in variables]
    assert decayed == [True, not excluded, False, False, False]
    with pytest.raises(ValueError, match="before the optimizer is built"):
        optimizer.exclude_from_weight_decay(kernels)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_variables_of_half_precision_are_refused(dtype):
    """Adam's steps would be zero."""
    layer = keras.layers.Dense(2, dtype=dtype)
    layer.build((None, 3))
    with pytest.raises(ValueError, match=f"kernel' of {dtype}.*mixed_{dtype}"):
        PKMAdam().build(layer.trainable_variables)


def test_loss_scaling_passes_on_what_is_set():
    optimizer = LossScaleOptimizer(PKMAdam(0.5, 0.25, weight_decay=0.1))
    optimizer.memory_learning_rate = 0.125
    assert optimizer.inner_optimizer.memory_learning_rate == 0.125
    assert optimizer.memory_learning_rate == 0.125
    kernel = keras.Variable([[2.0]], name="kernel")
    optimizer.exclude_from_weight_decay([kernel])
    optimizer.build([kernel])
    optimizer.apply([tf.zeros((1, 1))], [kernel])
    assert kernel.numpy().item() == 2.0


def test_equals_adamw_where_it_decays():
    start = np.random.default_rng(1).normal(size=(4, 3)).astype("float32")
    results = []
    for optimizer in (
        PKMAdam(0.1, weight_decay=0.2),
        keras.optimizers.AdamW(0.1, weight_decay=0.2),
    ):
        kernel = keras.Variable(start, name="kernel")
        for _ in range(3):
            optimizer.apply([tf.cos(kernel.value)], [kernel])
        results.append(np.array(kernel))
    np.testing.assert_allclose(*results, rtol=1e-6)


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


def test_a_multiple_follows_the_learning_rate():
    optimizer = PKMAdam(0.5, "10x")
    values = table(np.zeros((4, 2)))
    kernel = keras.Variable(np.zeros(2, "float32"), name="kernel")
    optimizer.build([values, kernel])
    gradients = [tf.ones((4, 2)), tf.ones(2)]
    for rate in (0.5, 0.125):  # as a callback sets it
        optimizer.learning_rate = rate
        before = values.numpy()[0, 0], kernel.numpy()[0]
        optimizer.apply_gradients(zip(gradients, [values, kernel]))
        moved = values.numpy()[0, 0] - before[0]
        # Adam's first steps on equal gradients are as large as the rate.
        assert moved == pytest.approx(-10 * rate, rel=1e-4)
        assert kernel.numpy()[0] - before[1] == pytest.approx(-rate, rel=1e-4)
    copy = check_config_round_trip(optimizer)
    assert float(copy.memory_learning_rate) == pytest.approx(1.25)
    assert float(PKMAdam(1.0, "0x").memory_learning_rate) == 0
    schedule = PKMAdam(LinearWarmup(1.0, 2, 4), "2x")
    schedule.iterations.assign(1)
    assert float(schedule.memory_learning_rate) == 1.0
    with pytest.raises(TypeError, match="a multiple, and cannot be set"):
        schedule.memory_learning_rate = 1.0


@pytest.mark.parametrize("rate", ["fast", "x", "-2x", "10", "1e-3"])
def test_what_is_no_multiple(rate):
    with pytest.raises(ValueError, match="`memory_learning_rate` must be.*10x"):
        PKMAdam(memory_learning_rate=rate)


def test_groups_are_logged_once(caplog):
    kernel = keras.Variable(np.ones((2, 3)), name="kernel")
    bias = keras.Variable(np.ones(3), name="bias")
    variables = [table(np.ones((5, 4))), kernel, bias]
    optimizer = PKMAdam(weight_decay=0.1)
    with caplog.at_level(logging.INFO, "keras_pkm"):
        optimizer.build(variables)
        optimizer.build(variables)
    assert caplog.messages == [
        "PKMAdam: 20 parameters in 1 value tables, 6 that decay, 3 others"
    ]


def test_a_model_without_tables():
    kernel = keras.Variable(np.ones((2, 3)), name="kernel")
    optimizer = PKMAdam()
    optimizer.build([kernel])
    optimizer.apply([tf.ones((2, 3))], [kernel])
    assert np.all(np.array(kernel) < 1)


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
        reduction="dense",
        name="adam",
    )
    copy = check_config_round_trip(optimizer)
    copy.build([table(np.ones((2, 2)))])
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
