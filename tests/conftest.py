"""Two logical CPU devices for all tests, and the same seed for each."""

import pathlib

import keras
import pytest
import tensorflow as tf

from training.commands.host_memory import keep_host_memory

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)


# Those that take minutes, the longest first, so that with `-n 2` neither
# process is left with one of them at the end.
_LONGEST = (
    "training/pretrain_test.py",
    "models/families_test.py",
    "training/resume_test.py",
    "benchmarks_test.py",
    "training/multi_worker_test.py",
    "training/reproduce_test.py",
    "notebooks_test.py",
    "export/fresh_process_test.py",
    "training/analyze_memory_test.py",
    "training/finetune_test.py",
    "optimizers/train_step_test.py",
    "export/any_text_test.py",
    "callbacks/training_checkpoint_test.py",
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


@pytest.fixture(autouse=True, scope="module")
def free_memory():
    """Graphs of a file's models would otherwise stay to the end."""
    yield
    keras.utils.clear_session()


@pytest.fixture(autouse=True, scope="session")
def memory():
    """As `training.commands.strategy.create_strategy` has it."""
    keep_host_memory()


@pytest.fixture(scope="session")
def mirrored():
    """A real MirroredStrategy, on a machine without a GPU, too."""
    return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
