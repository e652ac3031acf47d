"""What is left to the slow tier."""

from collections.abc import Iterable
from typing import Any

import keras
import pytest

eager_and_graph = pytest.mark.parametrize(
    "eager",
    [
        pytest.param(True, id="eager"),
        # Its graph takes seconds to trace; a few eager steps do not.
        pytest.param(False, id="graph", marks=pytest.mark.slow),
    ],
)


def slow_but(quick: Any, names: Iterable[Any]) -> list:
    """Returns names or values as parameters; all but one, or some, are slow."""
    quick = quick if isinstance(quick, tuple) else (quick,)
    return [
        name
        if name in quick
        else pytest.param(name, marks=pytest.mark.slow, id=str(name))
        for name in names
    ]


def but_on_tensorflow(quick: str, names: Iterable[str]) -> list:
    """Returns the names as parameters; on TensorFlow, all but one are slow."""
    if keras.backend.backend() == "tensorflow":
        return slow_but(quick, [quick, *names])
    return [quick, *names]


def slow_on_tensorflow(test):
    """Leaves a test to the slow tier, and to the tests of other backends."""
    if keras.backend.backend() == "tensorflow":
        return pytest.mark.slow(test)
    return test


# For tests of code that all backends share.
not_on_jax = pytest.mark.skipif(
    keras.backend.backend() == "jax",
    reason="takes long to compile; TensorFlow and torch try the same",
)
