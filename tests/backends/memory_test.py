"""The layer against brute force in float64: outputs, reads, gradients."""

import keras
import numpy as np
import pytest

from keras_pkm.layers import FactMemory
from keras_pkm.layers import MaskedBatchNormalization
from keras_pkm.layers import NGramMemory
from keras_pkm.layers import ProductKeyMemory
from keras_pkm.metrics import MemoryUsage
from keras_pkm.metrics.class_labels import class_labels
from tests.backends.stepping import MODES
from tests.backends.stepping import assert_close
from tests.backends.stepping import assert_slopes
from tests.backends.stepping import outputs_and_gradients
from tests.backends.stepping import run
from tests.contracts import fixed_rng
from tests.contracts import to_numpy

# On TensorFlow, `tests/layers` tries the same.
pytestmark = (
    [pytest.mark.slow] if keras.backend.backend() == "tensorflow" else []
)
DIM = 10
CASES = {
    "batch": {},
    "layer": {"query_normalization": "layer"},
    "none": {"query_normalization": None},
    "one slot of each head": {"top_k": 1},
    "projected values": {"value_dim": 7},
    "deeper queries": {"query_hidden_dims": (8, 7)},
    "deeper queries, halves": {
        "query_hidden_dims": (8,),
        "query_normalization": "half_layer",
    },
    "gate, other width": {"gate": True, "value_dim": 7},
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


def of_layer(weights, name):
    """The weights of a sublayer, by their own names."""
    return {
        path.removeprefix(f"{name}/"): weight
        for path, weight in weights.items()
        if path.startswith(f"{name}/")
    }


def normalized(kind, inputs, parts, mask, training):
    if kind is None:
        return inputs
    if kind != "batch":
        epsilon = {"layer": 1e-3, "half_layer": 1e-5}[kind]
        mean = inputs.mean(-1, keepdims=True)
        variance = inputs.var(-1, keepdims=True)
    elif training:
        epsilon = 1e-5
        mean, variance = inputs[mask].mean(0), inputs[mask].var(0)
    else:
        epsilon = 1e-5
        mean, variance = parts["moving_mean"], parts["moving_variance"]
    normal = (inputs - mean) / np.sqrt(variance + epsilon)
    return normal * parts["gamma"] + parts["beta"]


def brute_force(weights, inputs, mask, layer, training):
    """Outputs and slots, in float64: scores all slots and reads all."""
    heads, top_k, key_dim = layer.num_heads, layer.top_k, layer.key_dim
    kind, hidden = layer.query_normalization, inputs
    for number in range(1, len(layer.query_hidden_dims) + 1):
        name = f"query_hidden_{number}"
        hidden = hidden @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]
        parts = of_layer(weights, f"{name}_normalization")
        hidden = normalized(kind, hidden, parts, mask, training)
        hidden = np.maximum(hidden, 0)
    queries = hidden @ weights["query_projection/kernel"]
    queries = queries + weights["query_projection/bias"]
    shape = {
        "batch": (heads * key_dim,),
        "half_layer": (heads, 2, key_dim // 2),
    }.get(kind, (heads, key_dim))
    queries = normalized(
        kind,
        queries.reshape(-1, *shape),
        of_layer(weights, "query_normalization"),
        mask,
        training,
    )
    queries = queries.reshape(-1, heads, 2, key_dim // 2)
    scores = np.einsum("thsd,hsnd->thsn", queries, weights["sub_keys"])
    scores = scores[:, :, 0, :, None] + scores[:, :, 1, None, :]
    scores = scores.reshape(len(inputs), heads, -1)
    slots = np.argsort(-scores, axis=-1, kind="stable")[..., :top_k]
    best = np.take_along_axis(scores, slots, -1)
    shares = np.exp(best - best[..., :1])
    shares /= shares.sum(-1, keepdims=True)
    outputs = np.einsum("thk,thkw->tw", shares, weights["table/values"][slots])
    if layer.gate:
        gates = inputs @ weights["gate_projection/kernel"]
        gates = gates + weights["gate_projection/bias"]
        outputs = outputs * gates / (1 + np.exp(-gates))
    if "output_projection/kernel" in weights:
        outputs = outputs @ weights["output_projection/kernel"]
        outputs = outputs + weights.get("output_projection/bias", 0)
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

    def loss(moved):
        there, read = brute_force(moved, inputs, mask, layer, training)
        # Otherwise there is no derivative.
        np.testing.assert_array_equal(read[mask], slots[mask])
        return (there * upstream).sum()

    names = map(path_of, weights)
    assert_slopes(loss, exact, dict(zip(names, gradients)), rng)


@pytest.mark.parametrize("mode", MODES)
def test_dropped_sub_keys_are_not_read(mode):
    """By no token of a step, and others are dropped in the next one."""
    layer = make_layer(key_dropout=0.3, query_normalization=None)
    inputs = fixed_rng().normal(size=(400, DIM)).astype("float32")

    def read(x, training):
        _, access = layer(x, training=training, return_memory_access=True)
        return list(access)

    def sub_keys(slots):
        return [
            set(np.unique(half[:, head]))
            for half in (slots // 9, slots % 9)
            for head in range(2)
        ]

    everywhere = run(lambda x: read(x, False), layer.weights, "eager", inputs)
    assert all(len(found) == 9 for found in sub_keys(everywhere[0]))
    state = [*layer.weights, *layer.non_trainable_variables]
    steps = [run(lambda x: read(x, True), state, mode, inputs) for _ in "ab"]
    first, second = (sub_keys(slots) for slots, _ in steps)
    assert first != second
    counts = [[len(found) for found in sub_keys(slots)] for slots, _ in steps]
    assert 4 < np.mean(counts) < 9
    for _, weights in steps:
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)


def test_a_head_without_sub_keys_reads_nothing():
    layer = make_layer(key_dropout=0.8, num_sub_keys=4, num_heads=16)
    x = fixed_rng().normal(size=(5, DIM)).astype("float32")
    _, (_, weights) = layer(x, training=True, return_memory_access=True)
    sums = to_numpy(weights).sum(-1)
    np.testing.assert_array_equal(
        sums.round(3), np.tile(sums[0].round(3), (5, 1))
    )
    assert set(sums[0].round(3)) == {0, 1}


def test_dropped_heads_read_nothing():
    layer = make_layer(head_dropout=0.5, num_heads=8)
    x = fixed_rng().normal(size=(5, DIM)).astype("float32")
    _, (_, weights) = layer(x, training=True, return_memory_access=True)
    sums = to_numpy(weights).sum(-1)
    np.testing.assert_allclose(sums, np.tile(sums[0], (5, 1)), rtol=1e-5)
    assert set(sums[0].round(3)) == {0, 2}
    _, (_, weights) = layer(x, training=False, return_memory_access=True)
    np.testing.assert_allclose(to_numpy(weights).sum(-1), 1, rtol=1e-5)


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


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
@pytest.mark.parametrize("kind", ["product keys", "n-grams", "facts"])
def test_no_tokens(kind, shape):
    """Such as a part of a batch that gradients are accumulated over."""
    memory = {
        "product keys": lambda: ProductKeyMemory(4, top_k=2, key_dim=4),
        "n-grams": lambda: NGramMemory(50, (1, 2)),
        "facts": lambda: FactMemory(50, num_keys=2, orders=(1, 2)),
    }[kind]()
    x = np.zeros((*shape, DIM), "float32")
    named = {"token_ids": np.zeros(shape, "int32")}
    if kind == "product keys":
        named = {}
    outputs, access = memory(x, return_memory_access=True, **named)
    assert outputs.shape == x.shape
    metric = MemoryUsage(memory.num_slots)
    metric.update_state(*access)
    assert metric.counts["reads"].sum() == 0
    assert class_labels(np.zeros((0, 4)), "labels", num_classes=4).shape == (0,)
