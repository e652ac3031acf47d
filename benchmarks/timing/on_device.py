"""Times what runs on the device of Keras' backend, whichever that is."""

import time
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import keras

from benchmarks.timing.times import Times


def names() -> list[str]:
    """Returns the names of the accelerators of Keras' backend."""
    match keras.backend.backend():
        case "jax":
            import jax

            found = [each.device_kind for each in jax.devices()]
            return [] if jax.default_backend() == "cpu" else found
        case "torch":
            import torch

            count = torch.cuda.device_count()
            return [torch.cuda.get_device_name(n) for n in range(count)]
        case _:
            import tensorflow as tf

            details = tf.config.experimental.get_device_details
            return [
                details(gpu).get("device_name", "GPU")
                for gpu in tf.config.list_physical_devices("GPU")
            ]


def wait_for(results: Any) -> None:
    """Waits until a device has computed something."""
    match keras.backend.backend():
        case "jax":
            import jax

            jax.block_until_ready(results)
        case "torch":
            import torch

            if torch.cuda.is_available():
                torch.cuda.synchronize()
        case _:
            import tensorflow as tf

            tf.test.experimental.sync_devices()


def time_in_turn(
    functions: Mapping[str, Callable[[], Any]],
    rounds: int,
    calls: int = 1,
) -> dict[str, Times]:
    """Times functions in turn, A B A B ..., after two calls of each."""
    for function in functions.values():
        wait_for([function(), function()][-1])
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.perf_counter()
            for _ in range(calls):
                results = function()
            wait_for(results)
            seconds[name].append((time.perf_counter() - begin) / calls)
    return {name: Times(each) for name, each in seconds.items()}
