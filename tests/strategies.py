"""The strategies of `tf.distribute` that a model may be made in."""

import pytest
import tensorflow as tf

from tests.own_collectives import use_own_collectives


def _mirrored(*devices):
    strategy = tf.distribute.MirroredStrategy(devices)
    # The session's strategy may be made next, before the next test begins.
    use_own_collectives()
    return strategy


STRATEGIES = {
    "default": tf.distribute.get_strategy,
    "one device": lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
    "one replica": lambda: _mirrored("/cpu:0"),
    "two replicas": lambda: _mirrored("/cpu:0", "/cpu:1"),
}


def each_strategy(test):
    """Runs a test with a model of each strategy, in and outside its scope."""
    return pytest.mark.parametrize(
        ("make_strategy", "is_inside"),
        [
            pytest.param(make, inside, id=f"{name}, {where} its scope")
            for name, make in STRATEGIES.items()
            for where, inside in (("outside", False), ("in", True))
            # The default strategy has no scope, and one device stays one.
            if inside or name in ("default", "two replicas")
            if (name, inside) != ("default", True)
        ],
    )(test)
