"""Makes the many small graphs of this folder in less time."""

import pytest
import tensorflow as tf


@pytest.fixture(autouse=True, scope="package")
def graphs_as_they_are_traced():
    """To optimize a graph takes longer than to run it once or twice."""
    options = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": True}
    )
    yield
    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": False, **options}
    )
