"""Steps in parts against the same steps as a whole."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from tests.contracts import fixed_rng
from tests.contracts import fresh_rng
from tests.models.modes import eager_and_graph
from tests.models.tiny import MEMORY
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import half_precision_batch
from tests.models.tiny import half_precision_task
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_masked_lm


def trained(
    strategy, batches, parts, eager=False, normalization="layer", **options
):
    """A task after a step for each batch, and the logs of the last epoch."""
    keras.utils.set_random_seed(1)
    with strategy.scope():
        task = tiny_masked_lm(
            **ONE_LAYER,
            memory={**MEMORY, "query_normalization": normalization},
        )
        task.backbone.pooled_dense.trainable = False
        task.compile(
            # Beside a small epsilon, a gradient that is rounding alone would
            # become a whole step.
            PKMAdam(1e-3, 1e-2, epsilon=1e-4, **options),
            weighted_metrics=["sparse_categorical_accuracy"],
            run_eagerly=eager,
        )
    task.accumulation_steps = parts
    stacked = tf.nest.map_structure(lambda *x: np.stack(x), *batches)
    data = tf.data.Dataset.from_tensor_slices(stacked)
    history = task.fit(data, shuffle=False, verbose=0)
    return task, history.history


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "eager, devices, num_parts, options",
    [
        (True, 1, 4, {}),
        slow(False, 1, 4, {}),
        (False, 2, 2, {"global_clipnorm": 0.05}),
        slow(False, 2, 4, {"global_clipnorm": 0.05}),
    ],
)
def test_parts_train_as_the_whole(eager, devices, num_parts, options, mirrored):
    rng = fixed_rng()
    batches = [masked_batch(rng, batch=16) for _ in range(3)]
    one = tf.distribute.get_strategy()
    strategy = mirrored if devices == 2 else one
    # The whole is trained in a graph in the slow tier alone.
    whole, expected_logs = trained(
        one, batches, 1, eager or num_parts == 2, **options
    )
    parts, logs = trained(strategy, batches, num_parts, eager, **options)
    for expected, actual in zip(whole.weights, parts.weights):
        np.testing.assert_allclose(
            actual, expected, atol=1e-6, err_msg=expected.path
        )
    for name, values in expected_logs.items():
        np.testing.assert_allclose(logs[name], values, rtol=1e-5)
    assert parts.optimizer.iterations == len(batches)


@eager_and_graph
def test_a_bad_part_skips_the_step(eager):
    rng = fresh_rng()
    good, bad = masked_batch(rng, batch=8), masked_batch(rng, batch=8)
    bad[2][5, 0] = np.nan
    one = tf.distribute.get_strategy()
    expected, _ = trained(one, [good], 4, eager, "batch")
    actual, _ = trained(one, [good, bad], 4, eager, "batch")
    for old, new in zip(expected.weights, actual.weights):
        np.testing.assert_array_equal(old, new, err_msg=old.path)


@eager_and_graph
def test_under_loss_scaling(eager):
    batch = half_precision_batch(eager, fresh_rng())
    kernels = []
    for parts in (1, 2):
        keras.utils.set_random_seed(1)
        task = half_precision_task(
            eager, memory={**MEMORY, "query_normalization": "layer"}
        )
        task.compile(
            LossScaleOptimizer(PKMAdam(1e-3), initial_scale=256.0),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            run_eagerly=eager,
        )
        task.accumulation_steps = parts
        data = tf.data.Dataset.from_tensors(batch)
        task.fit(data, shuffle=False, verbose=0)
        assert task.optimizer.iterations == 1
        kernels.append(np.array(task.backbone.transformer_layers[0].weights[0]))
    # Half precision: most steps have the same sign, hence the same size.
    difference = np.abs(kernels[0] - kernels[1])
    assert np.median(difference) < 1e-5
