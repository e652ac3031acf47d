"""The peak memory use of this process since the last reset.

On a GPU it is that of the framework's allocator, otherwise the resident memory
of the process, whose peak only Linux can reset.
"""

import pathlib
import sys

_STATUS = pathlib.Path("/proc/self/status")
_CLEAR = pathlib.Path("/proc/self/clear_refs")


def current() -> int | None:
    """Returns the bytes in use, or `None` if they are unknown."""
    gpu = _gpu()
    return gpu.current() if gpu else _resident("VmRSS")


def peak() -> int | None:
    """Returns the largest number of bytes in use since `reset`, or `None`."""
    gpu = _gpu()
    return gpu.peak() if gpu else _resident("VmHWM")


def reset():
    """Resets the peak."""
    gpu = _gpu()
    if gpu:
        gpu.reset()
    elif _CLEAR.exists():
        _CLEAR.write_text("5")  # proc(5): resets VmHWM


def _resident(name):
    if not _STATUS.exists():
        return None
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    return None


def _gpu():
    """The GPU memory counters of the framework in use, if any."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return _TorchCounters(torch)
    tf = sys.modules.get("tensorflow")
    if tf is not None and tf.config.list_physical_devices("GPU"):
        return _TensorFlowCounters(tf)
    return None


class _TorchCounters:
    def __init__(self, torch):
        self.current = torch.cuda.memory_allocated
        self.peak = torch.cuda.max_memory_allocated
        self.reset = torch.cuda.reset_peak_memory_stats


class _TensorFlowCounters:
    def __init__(self, tf):
        self._memory = tf.config.experimental

    def current(self):
        return self._memory.get_memory_info("GPU:0")["current"]

    def peak(self):
        return self._memory.get_memory_info("GPU:0")["peak"]

    def reset(self):
        self._memory.reset_memory_stats("GPU:0")
