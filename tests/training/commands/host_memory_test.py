import platform
import subprocess
import sys

import pytest

from tests.training.tiny_run import ROOT

# How many pages come anew when eight times 1 MiB are used and freed, 50 times.
_COUNT = """
import resource, sys
import numpy as np
import tensorflow as tf
from training.commands.strategy import keep_host_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        [np.ones(2**18, "float32") for _ in range(8)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def use_generator():
    number = tf.TensorSpec((), "int32")
    make = tf.data.Dataset.from_generator
    list(make(lambda: iter([1]), output_signature=number))

if sys.argv[1] == "kept":
    keep_host_memory()
use_generator()
faults()
print(faults())
"""


@pytest.mark.slow
@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc is changed"
)
def test_freed_memory_is_used_again():
    def count(kind):
        result = subprocess.run(
            [sys.executable, "-c", _COUNT, kind],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=True,
        )
        return int(result.stdout)

    # If TensorFlow leaves the allocator alone, this is of no use any more.
    returned = count("returned")
    assert returned > 50 * 1000
    assert count("kept") < returned / 10
