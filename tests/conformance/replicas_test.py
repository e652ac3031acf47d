"""Training on two devices: a real MirroredStrategy."""

import numpy as np
import pytest

from tests.conformance.comparing import check_same_end
from tests.conformance.comparing import components
from tests.conformance.descriptors import IN_DEPTH
from tests.conformance.training import train
from tests.conformance.training import trained


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_DEPTH)
def test_two_replicas_train_as_one(name, mirrored):
    """Each has half of the batch; the weights stay the same on both."""
    # Two graphs of whole tasks take twice as long, most of it to trace them;
    # the tests of callbacks have those of a backbone.
    eager = name not in ("MaskedBatchNormalization", "ProductKeyMemory")
    training = train(name, mirrored, run_eagerly=eager)
    for weight in training.model.weights:
        first, second = components(weight)
        np.testing.assert_array_equal(first, second, err_msg=weight.path)
    np.testing.assert_allclose(training.losses, trained(name).losses, rtol=1e-4)
    check_same_end(training, trained(name), tolerance=1e-3)
