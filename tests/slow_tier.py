"""What is left to the slow tier."""

from collections.abc import Collection
from collections.abc import Iterable

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


def slow_but(quick: str | Collection[str], names: Iterable[str]) -> list:
    """Returns the names as parameters, of which one or some are not slow."""
    quick = [quick] if isinstance(quick, str) else quick
    return [
        name
        if name in quick
        else pytest.param(name, marks=pytest.mark.slow, id=name)
        for name in names
    ]


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
