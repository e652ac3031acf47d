"""Devices, machines and dtypes to train with."""

import ctypes
import json
import os
import platform
from typing import Any
from typing import Literal

import tensorflow as tf

from training.runs.user_error import UserError

# From glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# The limit of glibc's own adjustment of both.
_LARGEST = 32 * 2**20


def keep_host_memory() -> None:
    """Undoes the effect of TensorFlow's generator datasets on the allocator.

    Distributed datasets are made of generator datasets. The first of these in a
    process makes glibc return freed memory at once (it logs
    "M_TRIM_THRESHOLD=128 kb"), and switches off glibc's own adjustment. On a
    CPU each train step then maps and clears its pages again. For a small BERT
    these are 45,000 pages instead of 8,000 to 14,000, and a fifth to a half
    more CPU time.

    Call it after logical devices are set. Without glibc it does nothing.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    # TensorFlow changes the settings only once, so that later ones persist.
    element = tf.TensorSpec((), "int32")
    for _ in tf.data.Dataset.from_generator(
        lambda: iter([0]), output_signature=element
    ):
        pass
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST)
    libc.mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST)


def create_strategy(
    name: str, devices: int | None = None
) -> tf.distribute.Strategy:
    """Returns the distribution strategy of that name.

    It must be called before TensorFlow has used a device. On a machine without
    a GPU, `"mirrored"` splits the CPU into logical devices. That makes nothing
    faster, but runs the same code as several GPUs.
    """
    if name == "multi_worker":
        if devices is not None:
            raise UserError(
                "--devices must be left out with --strategy multi_worker, "
                f"which uses all, received {devices}: set CUDA_VISIBLE_DEVICES"
            )
        check_tf_config(os.environ.get("TF_CONFIG"))
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        keep_host_memory()
        return strategy
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
    keep_host_memory()
    return tf.distribute.MirroredStrategy(
        [f"/{kind}:{number}" for number in range(count)]
    )


def prepare_devices(recipe: Any) -> tf.distribute.Strategy:
    """Returns the strategy of a recipe, and sets up determinism if requested.

    It must be called before TensorFlow has used a device.
    """
    if recipe.deterministic:
        tf.config.experimental.enable_op_determinism()
    return create_strategy(recipe.strategy, recipe.devices)


def _split_cpu(count: int) -> None:
    """Makes at least `count` logical devices of the CPU."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    if len(tf.config.get_logical_device_configuration(cpu) or ()) < count:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * count
        )


def check_tf_config(text: str | None) -> None:
    """Checks the environment variable that lists all workers."""
    example = (
        '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, '
        '"task": {"type": "worker", "index": 0}}'
    )
    try:
        config = json.loads(text or "")
        workers = config["cluster"]["worker"]
        task = config["task"]
        if task["type"] == "worker" and 0 <= task["index"] < len(workers):
            return
    except (ValueError, KeyError, TypeError):
        pass
    raise UserError(
        "the environment variable TF_CONFIG must list all workers and say "
        f"which of them this is, received {text!r}: set it to, for example, "
        f"{example}"
    )


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the only one, or the one that writes files."""
    return strategy.extended.should_checkpoint


def wait_for_all(strategy: tf.distribute.Strategy) -> None:
    """Waits until all workers have reached this point."""

    @tf.function
    def sum_of_ones() -> tf.Tensor:
        return strategy.reduce(
            "SUM", strategy.run(lambda: tf.constant(1.0)), axis=None
        )

    sum_of_ones()


def default_precision(
    strategy: str,
) -> Literal["float32", "mixed_float16", "mixed_bfloat16"]:
    """Returns the dtype policy that suits the strategy and the machine.

    The default strategy trains in float32. The others train in bfloat16, or in
    float16 on GPUs without bfloat16 arithmetic, which are those before Ampere.
    """
    if strategy == "default":
        return "float32"
    for gpu in tf.config.list_physical_devices("GPU"):
        details = tf.config.experimental.get_device_details(gpu)
        if details.get("compute_capability", (8, 0)) < (8, 0):
            return "mixed_float16"
    return "mixed_bfloat16"
