"""Fixtures of tests on TensorFlow, and two logical CPU devices for them."""

import gc
import itertools
import os

import keras
import pytest
import tensorflow as tf
from keras_hub.src.utils import pipeline_model
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.framework import ops

from tests.built_once import built_once
from tests.own_collectives import use_own_collectives
from tests.training.tiny_run import build_tiny_run
from tests.training.tiny_run import open_tiny_run
from training.commands.strategy import keep_host_memory

# Upstream's contract tests need grain. Users need not have it, and with it
# keras-hub's `fit` and `predict` take another way.
pipeline_model.grain = None
if "PYTEST_XDIST_WORKER" in os.environ:
    # As many threads as processes would wait for each other.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    # Those that tests start, likewise.
    os.environ["TF_NUM_INTRAOP_THREADS"] = "1"
    os.environ["TF_NUM_INTEROP_THREADS"] = "1"
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)

_files = itertools.count(1)


@pytest.fixture(autouse=True, scope="session")
def rare_garbage_collections():
    """Tracing makes many objects that stay, gone through again and again."""
    gc.set_threshold(500_000, 100, 100)
    # Those that were imported stay to the end.
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def untuned_datasets():
    """Whoever gives up an iterator waits until the thread that tunes it wakes.

    It sleeps for longer and longer times, so `fit` would end seconds late.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            dataset_ops.DatasetV2,
            "_apply_debug_options",
            lambda dataset: dataset.with_options(options),
        )
        yield


@pytest.fixture(autouse=True, scope="module")
def free_memory(rare_garbage_collections):
    """Graphs of a file's models would otherwise stay to the end."""
    gradients = ops.gradient_registry._registry
    before = set(gradients)
    yield
    # TensorFlow never forgets a custom gradient, and with it the graph of it.
    for name in set(gradients) - before:
        del gradients[name]
    # A collection takes half a second, and there are some 200 files.
    keras.utils.clear_session(free_memory=next(_files) % 3 == 0)


@pytest.fixture(autouse=True, scope="session")
def memory():
    """As `training.commands.strategy.create_strategy` has it."""
    keep_host_memory()


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """A pretraining run, which tests of later steps share; see `TinyRun`."""
    root = built_once(tmp_path_factory, "tiny-run", build_tiny_run)
    return open_tiny_run(root)


@pytest.fixture(autouse=True)
def own_collectives():
    use_own_collectives()


@pytest.fixture(scope="session")
def mirrored():
    """A real MirroredStrategy, on a machine without a GPU, too."""
    return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
