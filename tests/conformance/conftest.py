"""Makes the many small graphs of this folder in less time."""

import gc

import pytest
import tensorflow as tf


@pytest.fixture(autouse=True, scope="package")
def rare_garbage_collections():
    """Tracing makes many objects that stay, gone through again and again."""
    threshold = gc.get_threshold()
    gc.set_threshold(500_000, 100, 100)
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="module")
def what_stays_is_no_garbage(rare_garbage_collections):
    """Whatever is there when a file begins."""
    gc.freeze()


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
