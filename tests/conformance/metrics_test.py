"""Metrics: configurations, graphs, replicas."""

import dataclasses
import json
from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.metrics import ClassMemoryUsage
from keras_pkm.metrics import MatthewsCorrelation
from keras_pkm.metrics import MemoryStaleness
from keras_pkm.metrics import MemoryUsage
from tests.conformance.comparing import check_config
from tests.conformance.known_defects import cases


@dataclasses.dataclass(frozen=True)
class Metric:
    """One line of the table.

    Attributes:
        make: Function that returns it.
        updates: Arguments of two updates.
        is_split: Whether each of two replicas sees a part of the data, or
            both see the same.
    """

    make: Callable
    updates: tuple
    is_split: bool = True


def _accesses(*more):
    """Slots and weights of 2 examples, 3 tokens, 2 heads and 2 reads."""
    rng = np.random.default_rng(6)
    shape = (2, 3, 2, 2)
    return tuple(
        (
            tf.constant(rng.integers(0, 16, shape), "int32"),
            tf.constant(rng.random(shape), "float32"),
            *more,
        )
        for _ in range(2)
    )


METRICS = {
    "ClassMemoryUsage": Metric(
        lambda: ClassMemoryUsage(16), _accesses(tf.constant([0, 1]))
    ),
    "MatthewsCorrelation": Metric(
        lambda: MatthewsCorrelation(3),
        (
            (tf.constant([0, 1, 2]), tf.eye(3)),
            (tf.constant([0, 1, 1]), tf.eye(3)),
        ),
    ),
    "MemoryStaleness": Metric(
        lambda: MemoryStaleness(4),
        (
            (tf.constant([1, 0, 2, 0]), tf.constant(3)),
            (tf.constant([2, 1, 0, 0]), tf.constant(5)),
        ),
        is_split=False,
    ),
    "MemoryUsage": Metric(lambda: MemoryUsage(16), _accesses()),
}
each = pytest.mark.parametrize("name", METRICS)


def figures(metric):
    """The result as floats."""
    return keras.tree.map_structure(float, metric.result())


def expected(name):
    """What eager updates give."""
    metric = METRICS[name].make()
    for update in METRICS[name].updates:
        metric.update_state(*update)
    return figures(metric)


def assert_same(actual, wanted):
    keras.tree.assert_same_structure(actual, wanted)
    np.testing.assert_allclose(
        keras.tree.flatten(actual), keras.tree.flatten(wanted), rtol=1e-12
    )


@each
def test_config(name):
    metric = METRICS[name].make()
    check_config(metric)
    written = json.dumps(keras.saving.serialize_keras_object(metric))
    copy = keras.saving.deserialize_keras_object(json.loads(written))
    assert type(copy) is type(metric)
    for update in METRICS[name].updates:
        copy.update_state(*update)
    assert_same(figures(copy), expected(name))


@each
def test_reset(name):
    metric = METRICS[name].make()
    fresh = figures(metric)
    metric.update_state(*METRICS[name].updates[1])
    assert figures(metric) != fresh
    metric.reset_state()
    assert figures(metric) == fresh
    for update in METRICS[name].updates:
        metric.update_state(*update)
    assert_same(figures(metric), expected(name))


@pytest.mark.parametrize("name", cases("metric_in_graph", METRICS))
def test_update_in_a_graph(name):
    metric = METRICS[name].make()
    update = tf.function(metric.update_state)
    for arguments in METRICS[name].updates:
        update(*arguments)
    assert_same(figures(metric), expected(name))
    assert_same(
        keras.tree.map_structure(float, tf.function(metric.result)()),
        expected(name),
    )


@each
def test_update_under_xla(name):
    metric = METRICS[name].make()
    update = tf.function(metric.update_state, jit_compile=True)
    for arguments in METRICS[name].updates:
        update(*arguments)
    assert_same(figures(metric), expected(name))
    assert_same(
        keras.tree.map_structure(
            float, tf.function(metric.result, jit_compile=True)()
        ),
        expected(name),
    )


@pytest.mark.parametrize("name", cases("metric_of_replicas", METRICS))
def test_two_replicas_count_as_one(name, mirrored):
    with mirrored.scope():
        metric = METRICS[name].make()
    first, second = METRICS[name].updates
    if METRICS[name].is_split:
        together = [(first, second)]
    else:
        together = [(first, first), (second, second)]
    for pair in together:
        arguments = [
            mirrored.experimental_distribute_values_from_function(
                lambda context: parts[context.replica_id_in_sync_group]
            )
            for parts in zip(*pair)
        ]
        mirrored.run(metric.update_state, arguments)
    assert_same(figures(metric), expected(name))
