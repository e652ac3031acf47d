"""Optimizers and schedules: configurations, files, and steps of all kinds."""

import functools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.optimizers import LinearWarmup
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from tests.conformance.comparing import check_config
from tests.conformance.comparing import check_learned
from tests.conformance.comparing import check_same_end
from tests.conformance.comparing import components
from tests.conformance.comparing import right_or_refused
from tests.conformance.descriptors import LAYERS
from tests.conformance.descriptors import inputs_of
from tests.conformance.descriptors import labels_of
from tests.conformance.descriptors import randomize
from tests.conformance.known_defects import cases
from tests.conformance.training import train
from tests.optimizers.row_sparse import table
from tests.slow_tier import slow_but


def adam(**kwargs):
    # A large epsilon: else Adam makes steps of what is but rounding.
    return PKMAdam(
        0.02, 0.1, epsilon=0.1, weight_decay=0.1, clipnorm=0.5, **kwargs
    )


#: Each with the precision that it is for.
OPTIMIZERS = {
    "PKMAdam": (adam, "float32"),
    "PKMAdam with rows": (
        functools.partial(adam, second_moment="row", bias_correction="row"),
        "float32",
    ),
    "LossScaleOptimizer": (
        lambda **kwargs: LossScaleOptimizer(adam(**kwargs), initial_scale=8.0),
        "mixed_float16",
    ),
}
SCHEDULES = {"LinearWarmup": lambda: LinearWarmup(0.1, 2, 6)}
MODEL = "ProductKeyMemory"

each = pytest.mark.parametrize("name", OPTIMIZERS)


def small_model(name=MODEL, dtype=None):
    """With few variables: the update of each takes time to trace."""
    keras.utils.set_random_seed(1)
    memory = LAYERS[name].make(query_normalization=None, dtype=dtype)
    head = keras.layers.Dense(3, dtype=dtype)
    model = keras.Sequential(
        [keras.Input(LAYERS[name].shape[1:]), memory, head]
    )
    randomize(model)
    return model


def fit(name, **kwargs):
    make, dtype = OPTIMIZERS[name]
    arguments = {"optimizer": make, "make": small_model, "dtype": dtype}
    return train(MODEL, **{**arguments, **kwargs})


@functools.cache
def trained(name):
    """On one device, in a graph."""
    return fit(name)


def check_end(training, name):
    """Half precision rounds sums of two parts otherwise than whole sums."""
    is_half = "float16" in OPTIMIZERS[name][1]
    check_same_end(training, trained(name), 0.02 if is_half else 1e-3)


def two_steps(optimizer, apply=None):
    """Applies gradients of a table and of a kernel; returns both."""
    values = table(np.ones((4, 3)))
    variables = [values, keras.Variable(np.ones((2, 2)), name="kernel")]
    optimizer.build(variables)
    gradients = [
        tf.constant([[1.0, 2.0, 3.0], [0.0] * 3, [4.0, 5.0, 6.0], [0.0] * 3]),
        tf.constant([[1.0, -2.0], [3.0, 4.0]]),
    ]
    for _ in range(2):
        (apply or optimizer.apply)(gradients)
    return [np.array(variable) for variable in variables]


@each
def test_config(name):
    """Copies take the same steps, that of Keras' serialization, too."""
    optimizer = OPTIMIZERS[name][0]()
    copy = check_config(optimizer)
    written = json.dumps(keras.saving.serialize_keras_object(optimizer))
    again = keras.saving.deserialize_keras_object(json.loads(written))
    assert type(again) is type(optimizer)
    expected = two_steps(optimizer)
    assert not np.allclose(expected[0][0], 1)
    for actual in (two_steps(copy), two_steps(again)):
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", slow_but("PKMAdam with rows", OPTIMIZERS))
def test_fit(name):
    check_learned(trained(name))
    assert trained(name).model.optimizer.iterations == 2


@each
def test_eager_fit_ends_where_that_of_a_graph_does(name):
    check_end(fit(name, run_eagerly=True), name)


def test_fit_in_mixed_bfloat16():
    training = fit("PKMAdam", dtype="mixed_bfloat16", run_eagerly=True)
    check_learned(training)
    losses = trained("PKMAdam").losses
    np.testing.assert_allclose(training.losses, losses, rtol=0.05)
    assert training.losses != losses


@pytest.mark.slow
@each
def test_two_replicas_train_as_one(name, mirrored):
    # Two graphs of one of them are enough to wait for.
    eager = name == "LossScaleOptimizer"
    training = fit(name, strategy=mirrored, run_eagerly=eager)
    model = training.model
    for variable in [*model.weights, *model.optimizer.variables]:
        first, second = components(variable)
        np.testing.assert_array_equal(first, second, err_msg=variable.path)
    check_end(training, name)


@each
def test_keras_file(name, tmp_path):
    """The next step is that of a training that was not interrupted."""
    model = small_model()
    model.compile(OPTIMIZERS[name][0](), "mse", run_eagerly=True)
    batch = (inputs_of(MODEL), labels_of(MODEL))
    model.fit(*batch, verbose=0)
    model.save(tmp_path / "model.keras")
    copy = keras.models.load_model(tmp_path / "model.keras")
    assert type(copy.optimizer) is type(model.optimizer)
    for some in (model, copy):
        keras.utils.set_random_seed(2)
        some.fit(*batch, verbose=0)
        assert some.optimizer.iterations == 2
    for one, other in zip(model.weights, copy.weights, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LossScaleOptimizer"])
def test_xla_without_memory(name):
    """With `PKMAdam` in it."""
    ends = []
    for arguments in ({"jit_compile": True}, {"run_eagerly": True}):
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)])
        model.set_weights([np.eye(8, 3), np.ones(3)])
        optimizer = OPTIMIZERS[name][0]()
        model.compile(optimizer, "mse", **arguments)
        assert model.jit_compile == ("jit_compile" in arguments)
        model.fit(inputs_of(MODEL)[:, 0], np.ones((4, 3)), verbose=0)
        ends.append(model.get_weights())
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert not np.allclose(ends[0][0], np.eye(8, 3))


@pytest.mark.parametrize("name", cases("apply_under_xla", ["PKMAdam"]))
def test_xla_with_memory_is_right_or_refused(name):
    """As in a train step of one's own."""

    def compiled():
        optimizer = OPTIMIZERS[name][0]()
        apply = tf.function(optimizer.apply, jit_compile=True)
        return two_steps(optimizer, apply)

    right_or_refused(compiled, lambda: two_steps(OPTIMIZERS[name][0]()))


@pytest.mark.parametrize("name", cases("gradient_accumulation", ["PKMAdam"]))
def test_what_is_not_supported_is_refused_with_a_remedy(name):
    with pytest.raises(ValueError, match="`gradient_accumulation_steps`.*task"):
        PKMAdam(gradient_accumulation_steps=2)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name):
    """Eager, in a graph, under XLA, and after a round trip."""
    schedule = SCHEDULES[name]()
    rates = [float(schedule(step)) for step in range(8)]
    assert len(set(rates)) > 3
    written = json.dumps(keras.saving.serialize_keras_object(schedule))
    for other in (
        check_config(schedule),
        keras.saving.deserialize_keras_object(json.loads(written)),
        tf.function(schedule),
        tf.function(schedule, jit_compile=True),
    ):
        same = [float(other(tf.constant(step))) for step in range(8)]
        np.testing.assert_allclose(same, rates, rtol=1e-6)
