"""The layer against brute force in float64: outputs, reads, gradients."""

import keras
import numpy as np
import pytest

from keras_pkm.layers import MaskedBatchNormalization
from keras_pkm.layers import ProductKeyMemory
from tests.backends.stepping import MODES
from tests.backends.stepping import assert_close
from tests.backends.stepping import outputs_and_gradients
from tests.contracts import fixed_rng
from tests.contracts import to_numpy

DIM = 10
CASES = {
    "batch": {},
    "layer": {"query_normalization": "layer"},
    "none": {"query_normalization": None},
    "one slot of each head": {"top_k": 1},
    "projected values": {"value_dim": 7},
}


def make_layer(**options):
    config = {"num_sub_keys": 9, "num_heads": 2, "top_k": 4, "key_dim": 6}
    layer = ProductKeyMemory(**{**config, **options})
    layer.build((None, DIM))
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        # As after training: no zero biases, no unit gammas.
        noise = rng.normal(size=weight.shape, scale=0.3)
        if weight.name in ("gamma", "moving_variance"):
            weight.assign(np.exp(noise))
        elif weight.name in ("bias", "beta", "moving_mean"):
            weight.assign(noise)
    return layer


def path_of(weight):
    return weight.path.split("/", 1)[1]


def brute_force(weights, inputs, mask, layer, training):
    """Outputs and slots, in float64: scores all slots and reads all."""
    heads, top_k, key_dim = layer.num_heads, layer.top_k, layer.key_dim
    queries = inputs @ weights["query_projection/kernel"]
    queries = queries + weights["query_projection/bias"]
    if layer.query_normalization == "batch":
        if training:
            mean, variance = queries[mask].mean(0), queries[mask].var(0)
        else:
            mean = weights["query_normalization/moving_mean"]
            variance = weights["query_normalization/moving_variance"]
        queries = (queries - mean) / np.sqrt(variance + 1e-5)
    else:
        queries = queries.reshape(-1, heads, key_dim)
    if layer.query_normalization == "layer":
        mean = queries.mean(-1, keepdims=True)
        variance = queries.var(-1, keepdims=True)
        queries = (queries - mean) / np.sqrt(variance + 1e-3)
    if layer.query_normalization:
        queries = queries * weights["query_normalization/gamma"]
        queries = queries + weights["query_normalization/beta"]
    queries = queries.reshape(-1, heads, 2, key_dim // 2)
    scores = np.einsum("thsd,hsnd->thsn", queries, weights["sub_keys"])
    scores = scores[:, :, 0, :, None] + scores[:, :, 1, None, :]
    scores = scores.reshape(len(inputs), heads, -1)
    slots = np.argsort(-scores, axis=-1, kind="stable")[..., :top_k]
    best = np.take_along_axis(scores, slots, -1)
    shares = np.exp(best - best[..., :1])
    shares /= shares.sum(-1, keepdims=True)
    outputs = np.einsum("thk,thkw->tw", shares, weights["table/values"][slots])
    if "output_projection/kernel" in weights:
        outputs = outputs @ weights["output_projection/kernel"]
    return np.where(mask[:, None], outputs, 0), slots


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_equals_brute_force(name, training, mode):
    rng = fixed_rng()
    layer = make_layer(**CASES[name])
    inputs = rng.normal(size=(13, DIM)).astype("float32")
    upstream = rng.normal(size=(13, DIM)).astype("float32")
    mask = np.arange(13) % 5 < 4
    exact = {
        path_of(weight): to_numpy(weight).astype("float64")
        for weight in layer.weights
    }
    expected, slots = brute_force(exact, inputs, mask, layer, training)
    _, (found, _) = layer(
        inputs, mask=mask, training=False, return_memory_access=True
    )
    if not training:
        np.testing.assert_array_equal(to_numpy(found)[mask], slots[mask])

    weights = layer.trainable_weights
    outputs, gradients = outputs_and_gradients(
        lambda x: layer(x, mask=mask, training=training),
        weights,
        upstream,
        mode,
        inputs,
    )
    assert_close(outputs, expected)
    for weight, gradient in zip(weights, gradients):
        # The derivative of the loss in some directions.
        for _ in range(4):
            direction = rng.normal(size=weight.shape)
            direction /= np.linalg.norm(direction)
            losses = []
            for step in (1e-6, -1e-6):
                path = path_of(weight)
                moved = {**exact, path: exact[path] + step * direction}
                there, read = brute_force(moved, inputs, mask, layer, training)
                # Otherwise there is no derivative.
                np.testing.assert_array_equal(read[mask], slots[mask])
                losses.append((there * upstream).sum())
            slope = (losses[0] - losses[1]) / 2e-6
            scale = max(np.linalg.norm(gradient), 0.1)
            assert abs((gradient * direction).sum() - slope) <= 1e-5 * scale


def test_weights_that_are_float32_under_every_policy():
    layer = ProductKeyMemory(9, 2, 4, 6, dtype="mixed_bfloat16")
    outputs, (_, weights) = layer(
        np.ones((2, 3, DIM)), return_memory_access=True
    )
    dtypes = map(
        keras.backend.standardize_dtype, (outputs.dtype, weights.dtype)
    )
    assert list(dtypes) == ["bfloat16", "float32"]
    assert layer.table.values.dtype == layer.sub_keys.dtype == "float32"


def test_statistics_without_padding():
    layer = MaskedBatchNormalization(momentum=0.5)
    rng = fixed_rng()
    inputs = rng.normal(3, 2, size=(4, 5, 6)).astype("float32")
    mask = rng.random((4, 5)) < 0.6
    inputs[~mask] = np.nan
    layer.build(inputs.shape)
    outputs = to_numpy(layer(inputs, training=True, mask=mask))
    tokens = inputs[mask].astype("float64")
    mean, variance = tokens.mean(0), tokens.var(0)
    assert_close(outputs[mask], (tokens - mean) / np.sqrt(variance + 1e-5))
    assert_close(to_numpy(layer.moving_mean), mean / 2)
    assert_close(to_numpy(layer.moving_variance), 0.5 + variance / 2)
    # A batch without tokens, or with infinite ones, changes nothing.
    before = layer.get_weights()
    layer(inputs, training=True, mask=np.zeros_like(mask))
    inputs[mask] = np.inf
    layer(inputs, training=True, mask=mask)
    for old, new in zip(before, layer.get_weights()):
        np.testing.assert_array_equal(old, new)
