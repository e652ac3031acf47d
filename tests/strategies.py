"""The strategies of `tf.distribute` that a model may be made in."""

import pytest
import tensorflow as tf

STRATEGIES = {
    "default": tf.distribute.get_strategy,
    "one device": lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
    "one replica": lambda: tf.distribute.MirroredStrategy(["/cpu:0"]),
    "two replicas": lambda: tf.distribute.MirroredStrategy(
        ["/cpu:0", "/cpu:1"]
    ),
}


def each_strategy(test):
    """Runs a test with a model of each strategy, in and outside its scope."""
    return pytest.mark.parametrize(
        ("make_strategy", "is_inside"),
        [
            pytest.param(make, inside, id=f"{name}, {where} its scope")
            for name, make in STRATEGIES.items()
            for where, inside in (("outside", False), ("in", True))
        ],
    )(test)
