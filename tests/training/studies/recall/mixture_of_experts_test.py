"""The mixture of experts, against loops over tokens and experts."""

import keras
import keras_hub
import numpy as np
import pytest

from keras_pkm.trainers.freezing import freeze_pooler
from tests.contracts import to_numpy
from training.studies.recall.mixture_of_experts import MixtureOfExperts
from training.studies.recall.mixture_of_experts import put_experts


def gelu(x):
    return to_numpy(keras.activations.gelu(x))


def by_loops(layer, tokens, training):
    """Outputs, the loss of balance, and whether some found no room."""
    first, first_bias = (layer.rate * to_numpy(each) for each in layer._first)
    second, second_bias = (
        layer.rate * to_numpy(each) for each in layer._second
    )
    logits = tokens @ to_numpy(layer.router.kernel)
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    experts, count = layer.num_experts, len(tokens)
    room = int(np.ceil(2 * layer.top_k * count / experts))
    room = room if training else count
    best = np.argsort(-chances, axis=1, kind="stable")[:, : layer.top_k]
    outputs = to_numpy(layer.second_shared(layer.first_shared(tokens))).copy()
    taken, share = [0] * experts, [0] * experts
    for rank in range(layer.top_k):
        for number, token in enumerate(tokens):
            expert = best[number, rank]
            share[expert] += 1
            taken[expert] += 1
            if taken[expert] > room:
                continue
            gate = chances[number, expert]
            if layer.top_k > 1:
                gate /= chances[number, best[number]].sum()
            hidden = gelu(token @ first[expert] + first_bias[expert, 0])
            output = hidden @ second[expert] + second_bias[expert, 0]
            outputs[number] += gate * output
    share = np.array(share) / sum(share)
    loss = 0.01 * experts * (share * chances.mean(axis=0)).sum()
    return outputs, loss, max(taken) > room


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("top_k", [1, 2])
def test_equals_loops(top_k, training):
    keras.utils.set_random_seed(3)
    layer = MixtureOfExperts(8, 12, top_k, rate=4.0)
    # Most tokens want the same expert, so that some of them find no room.
    tokens = np.random.default_rng(1).normal(size=(5, 6, 10)) + 3
    tokens = tokens.astype("float32")
    layer.build(tokens.shape)
    kernel = to_numpy(layer.router.kernel).copy()
    kernel[:, 0] += 0.08
    layer.router.kernel.assign(kernel)
    for variable in layer._first[1], layer._second[1]:
        variable.assign(np.random.default_rng(2).normal(size=variable.shape))
    found = to_numpy(layer(tokens, training=training))
    expected, loss, is_full = by_loops(layer, tokens.reshape(-1, 10), training)
    np.testing.assert_allclose(
        found.reshape(-1, 10), expected, rtol=1e-4, atol=1e-4
    )
    # Outside of training there is room for all.
    assert is_full == training
    np.testing.assert_allclose(to_numpy(layer.losses[0]), loss, rtol=1e-5)


@pytest.mark.slow
def test_a_rate_of_experts_is_that_of_their_optimizer():
    """Weights that are stored smaller move further when they are used."""
    tokens = np.random.default_rng(1).normal(size=(1, 6, 10)).astype("float32")
    moved = []
    for rate in (1.0, 4.0):
        keras.utils.set_random_seed(3)
        layer = MixtureOfExperts(2, 12, 1, rate)
        layer.build(tokens.shape)
        (weights, _), before = layer._first, None
        before = rate * to_numpy(weights)
        inputs = keras.Input((6, 10))
        model = keras.Model(inputs, layer(inputs))
        adam = keras.optimizers.Adam(0.01, epsilon=1e-12)
        model.compile(adam, "mse", jit_compile=False)
        model.train_on_batch(tokens, 0 * tokens)
        moved.append((before, rate * to_numpy(weights) - before))
    (start, small), (other, large) = moved
    np.testing.assert_allclose(start, other, rtol=1e-5)
    some = np.abs(small) > 0.009
    assert some.sum() > 20
    np.testing.assert_allclose(large[some], 4 * small[some], rtol=0.01)


@pytest.mark.slow
def test_a_block_with_experts_trains_them_alone():
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=20,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        max_sequence_length=6,
    )
    freeze_pooler(backbone)
    before = backbone.count_params()
    experts = MixtureOfExperts(3, 12, 2)
    put_experts(backbone.transformer_layers[0], experts)
    of_network = 2 * 8 * 12 + 12 + 8
    assert backbone.count_params() == before + 3 * of_network + 3 * 8
    task = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)
    features = {
        "token_ids": np.arange(12).reshape(2, 6),
        "segment_ids": np.zeros((2, 6), "int32"),
        "padding_mask": np.ones((2, 6), "int32"),
        "mask_positions": np.array([[2], [3]]),
    }
    task.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[],
        jit_compile=False,
    )
    weights = [to_numpy(each).copy() for each in experts.trainable_variables]
    assert len(weights) == 9
    labels = np.array([[4], [5]])
    losses = task.fit(
        features, labels, epochs=30, shuffle=False, verbose=0
    ).history["loss"]
    assert losses[-1] < losses[0] / 2
    for before, after in zip(weights, experts.trainable_variables):
        assert (to_numpy(after) != before).any()
