"""Batches as a function of the step, made ahead of the model."""

from collections.abc import Callable

import tensorflow as tf


def step_batches(steps: tf.data.Dataset, batch: Callable) -> tf.data.Dataset:
    """Returns the batch of each step, in order.

    Args:
        steps: `tf.data.Dataset` of int64 scalars.
        batch: function. Takes a step, an int64 tensor, and returns its batch.
    """
    # tf.data keeps the order although it makes batches in parallel.
    batches = steps.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)
    # The thread that tunes a pipeline sleeps for ever longer times, and what
    # reads it waits at its end for that thread to wake: a minute, at worst.
    options = tf.data.Options()
    options.autotune.enabled = False
    return batches.with_options(options)
