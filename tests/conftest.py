"""Two logical CPU devices for all tests, and the same seed for each."""

import keras
import pytest
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True, scope="module")
def free_memory():
    """Graphs of a file's models would otherwise stay to the end."""
    yield
    keras.utils.clear_session()


@pytest.fixture(scope="session")
def mirrored():
    """A real MirroredStrategy, on a machine without a GPU, too."""
    return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
