"""What one backend writes, the others read; the same numbers on all of them.

It runs once for each backend with `-k writes`, then once with `-k reads`, and
the environment variable KERAS_PKM_EXCHANGE names a directory for all of them:

    KERAS_BACKEND=jax KERAS_PKM_EXCHANGE=/tmp/exchange \\
        pytest tests/backends/exchange_test.py -k writes
"""

import os
import pathlib

import keras
import numpy as np
import pytest
from keras import ops

import keras_pkm
from keras_pkm.ops.backend import backend
from tests.any_backbone.tiny_families import LENGTH
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_causal_lm
from tests.backends.stepping import dense
from tests.backends.stepping import run
from tests.contracts import to_numpy

BACKENDS = ("tensorflow", "jax", "torch")
HERE = keras.backend.backend()
FAMILIES = ("GPT2", "Llama", "Qwen3", "Gemma", "Mistral")
STEPS = 50


@pytest.fixture
def exchange():
    directory = os.environ.get("KERAS_PKM_EXCHANGE")
    if not directory:
        pytest.skip("KERAS_PKM_EXCHANGE names no directory to exchange files")
    return pathlib.Path(directory)


def make_model(family="GPT2", **memory):
    """A causal language model with the same weights on all backends."""
    model = make_causal_lm(
        family, {"num_sub_keys": 8, "top_k": 4, "key_dim": 8, **memory}
    )
    rng = np.random.default_rng(0)
    for weight in model.weights:
        noise = rng.normal(size=weight.shape, scale=0.2)
        is_scale = weight.name in ("gamma", "scale")
        weight.assign(1 + noise if is_scale else noise)
    return model


def make_batches(count):
    rng = np.random.default_rng(1)
    for _ in range(count):
        ids = rng.integers(1, 50, (4, LENGTH)).astype("int32")
        yield (
            {"token_ids": ids, "padding_mask": np.ones_like(ids)},
            np.roll(ids, -1, 1),
        )


def make_loss():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def first_gradients(model):
    """The gradients of the first batch, by the variable's path."""
    ((x, y),) = make_batches(1)
    variables = model.trainable_variables
    names = list(x)

    def step(*tensors):
        features, labels = dict(zip(names, tensors)), tensors[-1]
        found = backend.gradients(
            lambda: make_loss()(labels, model(features, training=True)),
            variables,
        )
        return list(map(dense, found))

    found = run(step, model.variables, "eager", *x.values(), y)
    return {
        variable.path: gradient
        for variable, gradient in zip(variables, found, strict=True)
    }


def train(model):
    """The losses of some steps."""
    optimizer = keras_pkm.optimizers.PKMAdam(1e-3, memory_learning_rate="10x")
    model.compile(optimizer, make_loss())
    losses = []
    for x, y in make_batches(STEPS):
        history = keras.Model.fit(model, x, y, batch_size=4, verbose=0)
        losses += history.history["loss"]
    return np.array(losses)


def generated(model):
    """Greedy tokens with a cache, and the best tokens without one."""
    model.compile(sampler="greedy")
    ((inputs, _),) = make_batches(1)
    prompt = np.arange(LENGTH) < 4
    made = model.generate(
        {
            "token_ids": inputs["token_ids"],
            "padding_mask": np.tile(prompt, (4, 1)).astype("int32"),
        },
        stop_token_ids=None,
    )["token_ids"]
    made = to_numpy(made)
    logits = model({"token_ids": made, "padding_mask": np.ones_like(made)})
    return made, to_numpy(logits).argmax(-1)


def outputs(model):
    return to_numpy(model(inputs_of(model.backbone)))


def taught(model):
    """A patch of some steps."""
    teacher = keras_pkm.teaching.MemoryTeacher(model, 0.1, loss=make_loss())
    teacher.teach([next(make_batches(1))], steps=5)
    return teacher.make_patch()


def test_writes(exchange):
    folder = exchange / HERE
    folder.mkdir(parents=True)
    numbers = {}
    for path, gradient in first_gradients(make_model()).items():
        numbers[f"gradient {path}"] = gradient
    numbers["losses"] = train(make_model())
    for family in FAMILIES:
        cached, best = generated(make_model(family))
        np.testing.assert_array_equal(cached[:, 4:], best[:, 3:-1])
        numbers[f"generated {family}"] = cached

    model = make_model()
    model.save_to_preset(str(folder / "preset"))
    model.save_weights(folder / "model.weights.h5")
    numbers["before"] = outputs(model)
    taught(model).save(folder / "patch.safetensors")
    numbers["after"] = outputs(model)
    np.savez(folder / "numbers.npz", **numbers)


@pytest.fixture(params=BACKENDS)
def theirs(request, exchange):
    """What a backend wrote: its folder and its numbers."""
    folder = exchange / request.param
    with np.load(folder / "numbers.npz") as numbers:
        return folder, dict(numbers)


def ours(exchange):
    with np.load(exchange / HERE / "numbers.npz") as numbers:
        return dict(numbers)


def test_reads_the_same_gradients(exchange, theirs):
    numbers = ours(exchange)
    names = [name for name in numbers if name.startswith("gradient ")]
    assert len(names) > 20
    for name in names:
        expected = theirs[1][name]
        scale = max(np.abs(expected).max(), 1e-3)
        difference = np.abs(numbers[name] - expected).max() / scale
        assert difference <= 1e-5, (name, difference)


def test_reads_the_same_losses(exchange, theirs):
    found, expected = ours(exchange)["losses"], theirs[1]["losses"]
    print(f"losses differ by {np.abs(found - expected).max():.2g} at most")
    assert len(found) == STEPS and expected[-1] < expected[0]
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_reads_the_same_generated_tokens(exchange, theirs, family):
    name = f"generated {family}"
    np.testing.assert_array_equal(ours(exchange)[name], theirs[1][name])


def test_reads_presets_weights_and_patches(theirs):
    folder, numbers = theirs
    model = keras_pkm.models.MemoryGPT2CausalLM.from_preset(
        str(folder / "preset")
    )
    np.testing.assert_allclose(outputs(model), numbers["before"], atol=1e-5)
    patch = keras_pkm.teaching.MemoryPatch.load(folder / "patch.safetensors")
    assert patch.num_rows
    patch.apply(model)
    np.testing.assert_allclose(outputs(model), numbers["after"], atol=1e-5)
    patch.revert(model)
    np.testing.assert_allclose(outputs(model), numbers["before"], atol=1e-5)
    other = make_model()
    for weight in other.weights:
        weight.assign(ops.zeros(weight.shape))
    other.load_weights(folder / "model.weights.h5")
    np.testing.assert_allclose(outputs(other), numbers["before"], atol=1e-5)
