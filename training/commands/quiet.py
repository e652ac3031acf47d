"""Hides TensorFlow's own messages, unless `--verbose` is given.

Scripts import it before all other modules. It also lets errors about missing
packages name the extra to install. TensorFlow prints dozens of lines
about devices, XLA and datasets. No setting hides the lines that it prints
during its import.
"""

import os
import sys

# First: a package may be missing that the imports below need.
import training.commands.missing_extra  # noqa: F401


def _import_tensorflow_in_silence() -> None:
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
