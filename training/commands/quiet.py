"""Keeps TensorFlow's own messages from the screen, unless `--verbose` is given.

Scripts import it before all other modules. TensorFlow prints dozens of lines
about devices, XLA and datasets; those that it prints while it is imported heed
no setting.
"""

import os
import sys


def _import_tensorflow_in_silence():
    sys.stderr.flush()
    stderr = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        import tensorflow  # noqa: F401
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


if "--verbose" in sys.argv:
    sys.argv.remove("--verbose")
else:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    _import_tensorflow_in_silence()
