"""Checks of values, in graphs, too."""

import tensorflow as tf


def is_known(tensor: tf.Tensor) -> bool:
    """Whether a tensor has values already: it is not part of a graph."""
    return hasattr(tensor, "numpy")


def assert_later(is_right: tf.Tensor, rule: str, values: tf.Tensor) -> None:
    """Adds an assertion to the graph. XLA drops it.

    Args:
        is_right: bool tensor.
        rule: The rule that the values have to follow, for the error.
        values: The values, for the error.
    """
    tf.debugging.Assert(
        tf.reduce_all(is_right), [rule, "Received:", values], summarize=8
    )
