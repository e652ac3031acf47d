import numpy as np
import pytest

from keras_pkm.optimizers import LinearWarmup
from tests.contracts import check_config_round_trip


def test_rises_and_falls_linearly():
    schedule = LinearWarmup(1e-3, warmup_steps=100, total_steps=500)
    steps = [0, 1, 50, 100, 300, 499, 500, 9999]
    expected = [0, 1e-5, 5e-4, 1e-3, 5e-4, 2.5e-6, 0, 0]
    actual = [float(schedule(step)) for step in steps]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_without_warmup():
    schedule = LinearWarmup(1.0, warmup_steps=0, total_steps=4)
    actual = [float(schedule(step)) for step in range(5)]
    np.testing.assert_allclose(actual, [1, 0.75, 0.5, 0.25, 0])


def test_config_and_errors():
    check_config_round_trip(LinearWarmup(1e-3, 10, 100))
    with pytest.raises(ValueError, match="`warmup_steps`.*total_steps=10"):
        LinearWarmup(1e-3, 10, 10)
    with pytest.raises(ValueError, match="`peak`"):
        LinearWarmup(-1.0, 1, 10)
