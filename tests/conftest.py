"""Two logical CPU devices for all tests, and the same seed for each."""

import gc
import os
import pathlib

import keras
import pytest
import tensorflow as tf
from keras_hub.src.utils import pipeline_model
from tensorflow.python.framework import ops

from tests.built_once import built_once
from tests.own_collectives import use_own_collectives
from tests.training.tiny_run import build_tiny_run
from tests.training.tiny_run import open_tiny_run
from training.commands.host_memory import keep_host_memory

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


# The longest files first, so that with `-n 2` neither process is left with one
# of them at the end. Those in the first lines are long because of slow tests.
_LONGEST = (
    "training/resume_test.py",
    "training/fuzz_test.py",
    "training/pretrain_causal_test.py",
    "training/reproduce_test.py",
    "docs/shell_test.py",
    "any_backbone/matrix_test.py",
    "benchmarks_test.py",
    "notebooks_test.py",
    "training/multi_worker_test.py",
    "export/fresh_process_test.py",
    "training/pretrain_test.py",
    "training/finetuning/finetune_test.py",
    "training/recall_test.py",
    "training/forgetting_test.py",
    "optimizers/train_step_test.py",
    "models/families_test.py",
    "models/tasks_test.py",
    "callbacks/training_checkpoint_test.py",
    "trainers/gradient_accumulation_test.py",
    "models/question_answerer_preprocessor_test.py",
    "training/analyze_memory_test.py",
    "export/saved_model_test.py",
    "docstrings_test.py",
)


def pytest_collection_modifyitems(items):
    folder = pathlib.Path(__file__).parent

    def place(item):
        name = item.path.relative_to(folder).as_posix()
        return _LONGEST.index(name) if name in _LONGEST else len(_LONGEST)

    items.sort(key=place)


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True, scope="session")
def rare_garbage_collections():
    """Tracing makes many objects that stay, gone through again and again."""
    gc.set_threshold(500_000, 100, 100)
    # Those that were imported stay to the end.
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def free_memory(rare_garbage_collections):
    """Graphs of a file's models would otherwise stay to the end."""
    gradients = ops.gradient_registry._registry
    before = set(gradients)
    yield
    # TensorFlow never forgets a custom gradient, and with it the graph of it.
    for name in set(gradients) - before:
        del gradients[name]
    keras.utils.clear_session()


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
