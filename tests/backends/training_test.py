"""Keras' own `fit` of models and tasks with memories."""

import keras
import numpy as np
import pytest

import keras_pkm
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_causal_lm
from tests.contracts import to_numpy
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import features
from tests.models.tiny import tiny_classifier

BACKEND = keras.backend.backend()
pytestmark = pytest.mark.skipif(
    BACKEND == "tensorflow", reason="TensorFlow has tests of its own"
)


def fit(model, x, y, **kwargs):
    return keras.Model.fit(model, x, y, verbose=0, shuffle=False, **kwargs)


def make_model(**options):
    memory = keras_pkm.layers.ProductKeyMemory(
        16, num_heads=2, top_k=4, key_dim=8, **options
    )
    return keras.Sequential(
        [keras.Input((12,)), keras.layers.Dense(12), memory]
    )


def data(rows=32):
    return np.random.default_rng(0).normal(size=(2, rows, 12)).astype("float32")


def test_whether_steps_are_compiled():
    model = make_model()
    assert model.layers[-1].supports_jit
    model.compile(keras_pkm.optimizers.PKMAdam(), "mse")
    assert model.jit_compile is (BACKEND == "jax")


@pytest.mark.parametrize(
    "jit_compile",
    [False, pytest.param(True, marks=pytest.mark.filterwarnings("ignore"))],
)
def test_learns_row_by_row(jit_compile):
    model = make_model(query_normalization=None)
    x, y = data()
    table = model.layers[-1].table.values
    probe = keras_pkm.models.MemoryProbe(model)
    probe.measure(x[:4])
    read = probe.counts[1]["reads"] > 0
    before = np.array(to_numpy(table))
    model.compile(
        keras_pkm.optimizers.PKMAdam(1e-2, memory_learning_rate=0.1),
        "mse",
        jit_compile=jit_compile,
    )
    fit(model, x[:4], y[:4])
    changed = (to_numpy(table) != before).any(1)
    np.testing.assert_array_equal(changed, read)
    # Of the same shape: another one would be compiled again.
    losses = fit(model, x, y, batch_size=4, epochs=2).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(policy):
    model = make_model(dtype=policy)
    x, y = data()
    optimizer = keras_pkm.optimizers.PKMAdam(1e-2, memory_learning_rate=0.1)
    if policy == "mixed_float16":
        optimizer = keras_pkm.optimizers.LossScaleOptimizer(optimizer)
    model.compile(optimizer, "mse")
    losses = fit(model, x, y, epochs=8).history["loss"]
    assert losses[-1] < losses[0]
    if policy == "mixed_float16":
        before = model.get_weights()[:2]
        bad = np.full_like(x, np.inf)
        fit(model, bad, y)
        assert float(optimizer.dynamic_scale) == 2.0**14
        for old, new in zip(before, model.get_weights()):
            np.testing.assert_array_equal(old, new)


def test_skipped_steps_are_counted():
    model = make_model()
    model.compile(keras_pkm.optimizers.PKMAdam(), "mse")
    x, y = data(8)
    x[0] = np.nan
    skipped = keras_pkm.callbacks.SkippedSteps()
    fit(model, x, y, batch_size=2, callbacks=[skipped])
    assert skipped.total == 1 and int(model.optimizer.iterations) == 3


def test_a_skipped_step_of_a_task_changes_nothing():
    """Nor the moving statistics, which are those of finite queries."""
    task = tiny_classifier(3, **ONE_LAYER)
    task.compile(keras_pkm.optimizers.PKMAdam(), _nan_loss)
    rng = np.random.default_rng(0)
    before = task.get_weights()
    fit(task, features(rng), rng.integers(0, 3, 8))
    for old, new in zip(before, task.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    task.compile(keras_pkm.optimizers.PKMAdam(), "auto")
    fit(task, features(rng), rng.integers(0, 3, 8))
    changed = {
        weight.name
        for weight, old in zip(task.weights, before)
        if (to_numpy(weight) != old).any()
    }
    assert {"values", "sub_keys", "moving_mean", "moving_variance"} <= changed


def _nan_loss(y_true, y_pred):
    return keras.ops.mean(y_pred) * np.nan


def test_tasks_are_compiled_with_our_optimizer():
    causal_lm = make_causal_lm("GPT2")
    assert isinstance(causal_lm.optimizer, keras_pkm.optimizers.PKMAdam)
    inputs = inputs_of(causal_lm.backbone)
    labels = np.roll(inputs["token_ids"], -1, axis=1)
    losses = fit(causal_lm, inputs, labels, epochs=5).history["loss"]
    assert losses[-1] < losses[0]


def test_usage_is_monitored(tmp_path):
    model = make_model()
    model.compile(keras_pkm.optimizers.PKMAdam(), "mse")
    x, y = data()
    monitor = keras_pkm.callbacks.MemoryUsageMonitor(
        x, 2, tmp_path / "usage.csv", counts_dir=tmp_path / "counts"
    )
    history = fit(
        model, x, y, epochs=2, batch_size=8, callbacks=[monitor]
    ).history
    assert history["memory_1_top1_reads"] == [64, 64]
    steps = {path.name for path in (tmp_path / "counts").iterdir()}
    assert steps == {f"step-{number}.npz" for number in (2, 4, 6, 8)}
    # A step has its own counts: training goes on in between.
    first, last = (
        np.load(tmp_path / "counts" / f"step-{n}.npz")["1/reads"]
        for n in (2, 8)
    )
    assert (first != last).any()


def test_what_only_tensorflow_has_is_refused_where_it_is_used(tmp_path):
    uses = [
        lambda: keras_pkm.callbacks.TrainingCheckpoint(tmp_path),
        lambda: keras_pkm.ops.portable_reads(),
        lambda: keras_pkm.export.saved_model(None, tmp_path / "served"),
        lambda: keras_pkm.export.patch("served", "patch", tmp_path / "newer"),
        lambda: keras_pkm.export.memory_usage("served", ["text"]),
        lambda: setattr(tiny_classifier(**ONE_LAYER), "accumulation_steps", 2),
    ]
    for use in uses:
        with pytest.raises(RuntimeError) as error:
            use()
        message = str(error.value)
        assert "needs the TensorFlow backend" in message
        assert f"Received: '{BACKEND}'. Set" in message
        assert "KERAS_BACKEND=tensorflow" in message
