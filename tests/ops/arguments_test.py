import keras
import pytest

from keras_pkm import callbacks
from keras_pkm import layers
from keras_pkm import metrics
from keras_pkm import optimizers

NAN = float("nan")
BLOCK = {"intermediate_dim": 8, "num_heads": 2}


@pytest.mark.parametrize(
    "owner, arguments, bad",
    [
        (optimizers.PKMAdam, {}, {"memory_learning_rate": NAN}),
        (optimizers.PKMAdam, {}, {"memory_learning_rate": -1.0}),
        (
            optimizers.LinearWarmup,
            {"warmup_steps": 1, "total_steps": 2},
            {"peak": NAN},
        ),
        (metrics.MemoryUsage, {}, {"num_slots": 1.5}),
        (metrics.ClassMemoryUsage, {}, {"num_slots": "4"}),
        (metrics.MemoryStaleness, {}, {"num_slots": 0}),
        (metrics.MatthewsCorrelation, {}, {"threshold": NAN}),
        (callbacks.TrainingCheckpoint, {"directory": "x"}, {"every": "a"}),
        (callbacks.TrainingCheckpoint, {"directory": "x"}, {"keep": 1.5}),
        (callbacks.MemoryUsageMonitor, {"data": None}, {"every": "a"}),
        (callbacks.SkippedSteps, {}, {"limit": 1.5}),
        (layers.PKMTransformerEncoder, BLOCK, {"num_heads": 0}),
        (layers.PKMTransformerEncoder, BLOCK, {"intermediate_dim": -1}),
    ],
)
def test_what_cannot_be_names_the_argument(owner, arguments, bad):
    if (
        owner is callbacks.TrainingCheckpoint
        and keras.backend.backend() != "tensorflow"
    ):
        pytest.skip("TensorFlow's alone")
    ((name, value),) = bad.items()
    with pytest.raises(ValueError) as error:
        owner(**{**arguments, **bad})
    assert f"`{name}` must be" in str(error.value)
    assert f"{name}={value!r}" in str(error.value)
