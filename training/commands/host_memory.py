"""Keeps the host memory that each step needs, instead of asking for it anew."""

import ctypes
import platform

import tensorflow as tf

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# Where glibc's own adjustment of both ends.
_LARGEST = 32 * 2**20


def keep_host_memory() -> None:
    """Undoes what TensorFlow's generator datasets do to the allocator.

    The first of them in a process, of which all distributed datasets are made,
    makes glibc return freed memory at once (it logs "M_TRIM_THRESHOLD=128 kb"),
    and keeps it from ever adjusting that. On a CPU each train step then has its
    pages mapped and cleared again: of a small BERT 45,000, where 8,000 to
    14,000 were, in a fifth to a half more CPU time.

    It takes effect once logical devices are set, and does nothing without
    glibc.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    # It is done once; what is set after it stays.
    element = tf.TensorSpec((), "int32")
    for _ in tf.data.Dataset.from_generator(
        lambda: iter([0]), output_signature=element
    ):
        pass
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST)
    libc.mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST)
