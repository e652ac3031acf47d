"""Devices and number formats to train with."""

import tensorflow as tf

from training.user_error import UserError


def create_strategy(
    name: str, devices: int | None = None
) -> tf.distribute.Strategy:
    """Returns the distribution strategy of that name.

    It must be called before TensorFlow has used a device. On a machine without
    a GPU, `"mirrored"` splits the CPU into logical devices: nothing gets
    faster by it, but everything that matters on several GPUs happens.

    Args:
        name: str. `"default"` for one device, `"mirrored"` for all GPUs.
        devices: int or None. How many GPUs or logical CPU devices. Defaults to
            all GPUs, or two logical CPU devices.

    Raises:
        UserError: the machine has fewer devices, or the strategy has one.
    """
    gpus = len(tf.config.list_physical_devices("GPU"))
    if name == "default":
        if devices not in (None, 1):
            raise UserError(
                "--devices must be 1 with --strategy default, received "
                f"{devices}: pass --strategy mirrored"
            )
        return tf.distribute.get_strategy()
    if not gpus:
        kind, count = "cpu", devices or 2
        _split_cpu(count)
    else:
        kind, count = "gpu", devices or gpus
        if count > gpus:
            raise UserError(
                f"--devices must be at most the {gpus} GPUs of this machine, "
                f"received {count}: pass a smaller number"
            )
    return tf.distribute.MirroredStrategy(
        [f"/{kind}:{number}" for number in range(count)]
    )


def _split_cpu(count):
    """Makes at least `count` logical devices of the CPU."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    if len(tf.config.get_logical_device_configuration(cpu) or ()) < count:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * count
        )


def default_precision(strategy: str) -> str:
    """Returns the dtype policy that suits the strategy and the machine.

    One device trains in float32. Several train in bfloat16, or in float16 on
    GPUs that have no bfloat16 arithmetic, those before Ampere.
    """
    if strategy == "default":
        return "float32"
    for gpu in tf.config.list_physical_devices("GPU"):
        details = tf.config.experimental.get_device_details(gpu)
        if details.get("compute_capability", (8, 0)) < (8, 0):
            return "mixed_float16"
    return "mixed_bfloat16"
