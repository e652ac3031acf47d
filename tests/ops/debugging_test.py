"""Global switches of TensorFlow for debugging."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.layers import ProductKeyMemory
from keras_pkm.metrics import ClassMemoryUsage
from keras_pkm.metrics import MatthewsCorrelation
from keras_pkm.metrics import MemoryStaleness
from keras_pkm.metrics import MemoryUsage
from keras_pkm.ops import embedding_bag
from keras_pkm.optimizers import PKMAdam
from tests.contracts import assert_close
from tests.contracts import fixed_rng

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def check_numerics(_):
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


@contextlib.contextmanager
def dump_debug_info(folder):
    tf.debugging.experimental.enable_dump_debug_info(
        str(folder), tensor_debug_mode="FULL_HEALTH"
    )
    yield
    tf.debugging.experimental.disable_dump_debug_info()


@pytest.fixture
def switch(request, tmp_path):
    """A switch that is off again at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(request.param(tmp_path))


def make_model():
    keras.utils.set_random_seed(1)
    inputs = keras.Input((8,))
    x = keras.layers.Dense(8)(inputs)
    outputs = ProductKeyMemory(5, num_heads=2, top_k=3, key_dim=4)(x)
    model = keras.Model(inputs, outputs)
    model.compile(PKMAdam(1e-3, 1e-2, epsilon=1e-4), "mse")
    return model


@pytest.fixture(scope="module")
def expected():
    """The weights after two trainings with no switch on."""
    model = make_model()
    return [train(model), train(model)]


def train(model):
    rng = fixed_rng()
    x, y = rng.normal(size=(2, 12, 8)).astype("float32")
    model.fit(x, y, batch_size=6, verbose=0, shuffle=False)
    return model.get_weights()


@pytest.mark.parametrize("switch", [check_numerics], indirect=True)
def test_metrics_in_a_graph_are_unchanged(switch):
    switch()
    labels, scores = [0, 1, 1, 0], [[2.0, 1], [1, 2], [2, 1], [2, 1]]
    slots = [[[0, 1]], [[2, 1]], [[3, 3]], [[0, 2]]]
    weights = [[[0.5, 0.5]]] * 4
    for metric, arguments in (
        (MatthewsCorrelation(2), (labels, scores, [1.0, 2, 1, 1])),
        (MemoryUsage(4), (slots, weights)),
        (ClassMemoryUsage(4), (slots, weights, labels)),
        (MemoryStaleness(4), ([2, 0, 1, 1], 3)),
    ):
        other = type(metric).from_config(metric.get_config())
        other.update_state(*map(tf.constant, arguments))
        update = tf.function(metric.update_state, autograph=False)
        update(*map(tf.constant, arguments))
        tf.nest.map_structure(assert_close, metric.result(), other.result())


@pytest.mark.parametrize(
    "switch, when",
    [
        (check_numerics, "traced"),
        (dump_debug_info, "before"),
    ],
    indirect=["switch"],
)
def test_training_in_a_graph_is_unchanged(switch, when, expected):
    if when == "before":
        switch()
    model = make_model()
    actual = [train(model)]
    if when == "traced":
        switch()
        model.make_train_function(force=True)
    actual.append(train(model))
    for one, other in zip(actual, expected):
        for new, old in zip(one, other, strict=True):
            np.testing.assert_allclose(new, old, atol=1e-6)


@pytest.mark.parametrize("switch", [check_numerics], indirect=True)
def test_a_nan_is_found(switch):
    switch()
    model = make_model()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Infinity or NaN"):
        model.fit(np.full((2, 8), np.nan), np.ones((2, 8)), verbose=0)


@pytest.mark.parametrize("switch", [check_numerics], indirect=True)
def test_switched_on_between_forward_and_backward_pass(switch):
    table = tf.Variable(tf.random.normal((17, 4)))
    slots, weights = tf.constant([[0, 5], [5, 2]]), tf.random.normal((2, 2))
    read = tf.function(lambda w: embedding_bag(table, slots, w, "fastest"))
    gradients = []
    for step in range(2):
        if step == 1:
            read = tf.function(read.python_function)
            read.get_concrete_function(weights)
            switch()
        with tf.GradientTape() as tape:
            tape.watch(weights)
            outputs = read(weights)
        gradients.append(tape.gradient(outputs, weights))
    assert_close(gradients[1], gradients[0], 1e-6)
