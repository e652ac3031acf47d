"""Makes batches from steps, ahead of the model."""

from collections.abc import Callable

import tensorflow as tf


def step_batches(steps: tf.data.Dataset, batch: Callable) -> tf.data.Dataset:
    """Returns the batch of each step, in order."""
    # tf.data makes batches in parallel, but keeps their order.
    batches = steps.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)
    # The thread that tunes a pipeline sleeps for longer and longer times. At
    # the end its reader waits until that thread wakes, up to a minute.
    options = tf.data.Options()
    options.autotune.enabled = False
    return batches.with_options(options)
