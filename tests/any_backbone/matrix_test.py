"""What a memory must not break, in each of several families of KerasHub."""

import gc
import inspect
import pathlib
import pickle
import subprocess
import sys

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from keras_pkm.models import families
from keras_pkm.optimizers import PKMAdam
from tests.any_backbone.tiny_families import ALL
from tests.any_backbone.tiny_families import FILLED
from tests.any_backbone.tiny_families import LENGTH
from tests.any_backbone.tiny_families import MEMORY
from tests.any_backbone.tiny_families import fit
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_causal_lm
from tests.any_backbone.tiny_families import make_plain
from tests.any_backbone.tiny_families import outputs_of

# All of them together take minutes.
pytestmark = pytest.mark.slow

SCRIPT = pathlib.Path(__file__).with_name("load_presets.py")
TRAINED = ("Bloom", "GPT2", "Gemma", "Llama")


def test_presets_in_a_fresh_process(tmp_path):
    """One process loads a backbone of each family."""
    expected = {}
    for family in ALL:
        plain = make_plain(family)
        model = keras_pkm.models.add_memory(plain, (2,), FILLED)
        check_config(family, plain, model)
        model.save_to_preset(str(tmp_path / family))
        inputs = inputs_of(model)
        np.savez(tmp_path / family / "inputs.npz", **inputs)
        expected[family] = outputs_of(model, inputs)
    root = SCRIPT.parents[2]
    subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)], check=True, cwd=root
    )
    for family, outputs in expected.items():
        found = np.load(tmp_path / family / "outputs.npz")
        for name, output in zip(sorted(found), outputs, strict=True):
            np.testing.assert_array_equal(found[name], output, err_msg=family)


def check_config(family, plain, model):
    """An argument that is left out would come back as the default."""
    arguments = set(inspect.signature(type(plain)).parameters) - {"kwargs"}
    if family == "Mixtral":
        # The backbone itself does not know it, and returns no such logits.
        arguments.remove("output_router_logits")
    assert arguments <= set(model.get_config()["backbone"]["config"]), family


def continuations(causal_lm, prompt, width, steps):
    """The best continuations by a beam search without a cache."""
    beams = [(0.0, prompt)]
    for _ in range(steps):
        grown = []
        for score, ids in beams:
            padded = np.zeros((1, LENGTH), "int32")
            padded[0, : len(ids)] = ids
            mask = (np.arange(LENGTH) < len(ids)).astype("int32")[None]
            logits = causal_lm({"token_ids": padded, "padding_mask": mask})
            log_p = tf.nn.log_softmax(tf.cast(logits, "float32"))
            for token, log_p_of_it in enumerate(log_p[0, len(ids) - 1].numpy()):
                grown.append((score + log_p_of_it, [*ids, token]))
        beams = sorted(grown, key=lambda beam: -beam[0])[:width]
    return beams


@pytest.mark.parametrize("family", ["GPT2", "Gemma", "Llama"])
def test_beam_search_with_a_cache_is_one_without(family):
    causal_lm = make_causal_lm(family)
    causal_lm.compile(sampler=keras_hub.samplers.BeamSampler(num_beams=3))
    token_ids = inputs_of(causal_lm.backbone)["token_ids"][:1]
    made = causal_lm.generate(
        {
            "token_ids": token_ids,
            "padding_mask": (np.arange(LENGTH) < 4).astype("int32")[None],
        },
        stop_token_ids=None,
    )
    best, second = continuations(causal_lm, [*token_ids[0, :4]], 3, 4)[:2]
    # Otherwise rounding decides which is the best.
    assert best[0] - second[0] > 1e-5
    np.testing.assert_array_equal(made["token_ids"][0], best[1])


def compiled(family, eager=True):
    causal_lm = make_causal_lm(family)
    causal_lm.compile(
        # With a small one, rounding becomes a step where nothing is learned.
        PKMAdam(1e-2, 1e-2, epsilon=1e-4),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        # Tracing would take longer than a few steps.
        run_eagerly=eager,
    )
    return causal_lm


def test_two_replicas_train_as_one(mirrored):
    one = compiled("GPT2")
    started = [weight.numpy() for weight in one.weights]
    fit(one)
    with mirrored.scope():
        two = compiled("GPT2", eager=False)
    fit(two)
    changed = False
    for a, b, before in zip(one.weights, two.weights, started, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5, err_msg=a.path)
        changed |= np.abs(a - before).max() > 1e-3
    assert changed


@pytest.mark.parametrize("family", TRAINED)
def test_mixed_bfloat16(family):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        plain = make_plain(family)
        model = keras_pkm.models.add_memory(plain, (2,), MEMORY)
        inputs = inputs_of(plain)
        # With values of zero, a memory adds nothing in any precision.
        for a, b in zip(outputs_of(model, inputs), outputs_of(plain, inputs)):
            np.testing.assert_array_equal(a, b)
        causal_lm = compiled(family)
        memory = causal_lm.backbone.transformer_layers[1].memory
        assert memory.compute_dtype == "bfloat16"
        losses = fit(causal_lm, steps=5)
    finally:
        keras.config.set_dtype_policy("float32")
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


@pytest.mark.parametrize("family", TRAINED)
def test_lora_and_the_memory_learn_and_nothing_else(family):
    causal_lm = compiled(family)
    causal_lm.backbone.enable_lora(2)
    causal_lm.compile(
        PKMAdam(1e-2, 1e-2), loss=causal_lm.loss, run_eagerly=True
    )
    before = {each.path: each.numpy() for each in causal_lm.weights}
    fit(causal_lm)
    changed = {
        each.path
        for each in causal_lm.weights
        if (each.numpy() != before[each.path]).any()
    }
    trainable = {each.path for each in causal_lm.trainable_variables}
    assert changed <= trainable
    assert any("lora_kernel" in path for path in changed)
    assert any(path.endswith("table/values") for path in changed)
    assert not any(
        path.endswith("token_embedding/embeddings") for path in changed
    )


def test_the_families_are_those_that_have_classes():
    """And no others, such as ALBERT."""
    made = {
        name
        for name, each in vars(families).items()
        if isinstance(each, type)
        and issubclass(each, keras_pkm.models.MemoryBackbone)
        and each is not keras_pkm.models.MemoryBackbone
        and each.plain_cls.__module__.startswith("keras_hub.")
    }
    named = {f"Memory{each.__name__}" for each in families.FAMILIES}
    assert named == made == {f"Memory{family}Backbone" for family in ALL}


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
@pytest.mark.parametrize(
    "family, memory_block",
    [
        ("Bert", "resm"),
        ("Bert", "pkm"),
        ("Electra", "resm"),
        ("GPT2", "serial"),
    ],
)
def test_presets_of_quantized_models(family, memory_block, tmp_path):
    model = keras_pkm.models.add_memory(
        make_plain(family), (2,), FILLED, memory_block
    )
    inputs = inputs_of(model)
    plain_outputs = outputs_of(model, inputs)
    gc.freeze()  # see below
    model.quantize("int8")
    model.save_to_preset(str(tmp_path))
    loaded = keras_hub.models.Backbone.from_preset(str(tmp_path))
    memory = loaded.transformer_layers[1].memory
    assert memory.query_projection.quantization_mode == "int8"
    for found, expected, before in zip(
        outputs_of(loaded, inputs),
        outputs_of(model, inputs),
        plain_outputs,
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
        assert (found != before).any()


@pytest.mark.parametrize("family", ["Bert", "GPT2", "Llama", "Electra"])
def test_pickled(family):
    block = "resm" if family in ("Bert", "Electra") else "serial"
    model = keras_pkm.models.add_memory(make_plain(family), (2,), FILLED, block)
    copy = pickle.loads(pickle.dumps(model))
    assert type(copy) is type(model)
    inputs = inputs_of(model)
    for a, b in zip(outputs_of(copy, inputs), outputs_of(model, inputs)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "family, memory_block",
    [("Bert", "resm"), ("Bert", "pkm"), ("Roberta", "serial")],
)
def test_lora_leaves_memories_of_encoders_as_they_are(family, memory_block):
    model = keras_pkm.models.add_memory(
        make_plain(family), (2,), MEMORY, memory_block
    )
    memory = model.transformer_layers[1].memory
    before = [each.path for each in memory.trainable_weights]
    model.enable_lora(2)
    assert [each.path for each in memory.trainable_weights] == before
    others = {each.path for each in model.trainable_weights} - set(before)
    plain = make_plain(family)
    plain.enable_lora(2)
    expected = {each.path for each in plain.trainable_weights}
    assert {path for path in others if "/normalization/" not in path} == (
        expected
    )


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
@pytest.mark.parametrize("family", ["GPT2", "Qwen"])
def test_a_memory_on_a_quantized_plain_model(family):
    plain = make_plain(family)
    # Keras collects garbage for each weight that it replaces. With all that
    # earlier tests have left, this would take minutes.
    gc.freeze()
    plain.quantize("int8")
    model = keras_pkm.models.add_memory(plain, (2,), MEMORY)
    inputs = inputs_of(plain)
    for a, b in zip(outputs_of(model, inputs), outputs_of(plain, inputs)):
        np.testing.assert_array_equal(a, b)
    values = model.transformer_layers[1].memory.table.values
    assert values.dtype == "float32"
