"""Tests that train eagerly, and in a graph in the slow tier.

A graph of a train step takes seconds to trace; a few eager steps do not.
"""

import pytest

eager_and_graph = pytest.mark.parametrize(
    "eager",
    [
        pytest.param(True, id="eager"),
        pytest.param(False, id="graph", marks=pytest.mark.slow),
    ],
)
