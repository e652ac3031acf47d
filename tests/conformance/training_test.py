"""`fit`, in graphs and eager, in float32 and in mixed precision."""

import numpy as np
import pytest

from tests.conformance.comparing import check_learned
from tests.conformance.comparing import check_same_end
from tests.conformance.descriptors import IN_DEPTH
from tests.conformance.descriptors import LAYERS
from tests.conformance.descriptors import MODELS
from tests.conformance.training import train
from tests.conformance.training import trained
from tests.slow_tier import slow_but

_QUICK = (
    "ProductKeyMemory",
    "MemoryBertBackbone with gated n-grams with tags",
    "MemoryRobertaMaskedLM",
)


in_depth = pytest.mark.parametrize("name", slow_but(_QUICK, IN_DEPTH))


@pytest.mark.parametrize("name", slow_but(_QUICK, [*LAYERS, *MODELS]))
def test_fit(name):
    """A layer within a small model, which has a dense layer on each side."""
    check_learned(trained(name))


@in_depth
def test_eager_fit_ends_where_that_of_a_graph_does(name):
    eager = train(name, run_eagerly=True)
    check_same_end(eager, trained(name), tolerance=1e-4)


@in_depth
def test_fit_in_mixed_precision(name):
    # keras-hub's masked-LM head cannot be called eagerly in it.
    training = train(
        name,
        dtype="mixed_bfloat16",
        run_eagerly=not name.endswith("MaskedLM"),
    )
    # Tags are integers.
    dtypes = {w.dtype for w in training.model.weights if w.name != "tags"}
    assert dtypes == {"float32"}
    check_learned(training)
    losses = trained(name).losses
    # Queries that were rounded may find other slots.
    np.testing.assert_allclose(training.losses, losses, rtol=0.25)
    assert training.losses != losses
