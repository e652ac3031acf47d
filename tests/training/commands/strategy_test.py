import pytest
import tensorflow as tf

from training.commands.strategy import create_strategy
from training.commands.strategy import default_precision
from training.runs.user_error import UserError

without_gpu = pytest.mark.skipif(
    bool(tf.config.list_physical_devices("GPU")),
    reason="this machine has a GPU, the test is about those without",
)


@without_gpu
@pytest.mark.parametrize("devices", [None, 1, 2])
def test_mirrored_splits_the_cpu(devices):
    strategy = create_strategy("mirrored", devices)
    assert isinstance(strategy, tf.distribute.MirroredStrategy)
    assert strategy.num_replicas_in_sync == (devices or 2)


def test_default_is_one_device():
    assert create_strategy("default").num_replicas_in_sync == 1
    assert create_strategy("default", 1).num_replicas_in_sync == 1
    with pytest.raises(UserError, match="--strategy mirrored"):
        create_strategy("default", 2)


@without_gpu
def test_precision():
    assert default_precision("default") == "float32"
    assert default_precision("mirrored") == "mixed_bfloat16"


def test_older_gpus_have_no_bfloat16(monkeypatch):
    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda kind: ["gpu"]
    )
    for capability, expected in (
        ((7, 0), "mixed_float16"),
        ((8, 0), "mixed_bfloat16"),
    ):
        monkeypatch.setattr(
            tf.config.experimental,
            "get_device_details",
            lambda gpu: {"compute_capability": capability},
        )
        assert default_precision("mirrored") == expected


def test_more_devices_than_gpus(monkeypatch):
    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda kind: ["gpu"] * 2
    )
    with pytest.raises(UserError, match="at most the 2 GPUs.*received 3"):
        create_strategy("mirrored", 3)
