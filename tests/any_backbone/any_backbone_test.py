"""Memories in backbones of KerasHub's families."""

import keras
import keras_hub
import numpy as np
import pytest

import keras_pkm
from keras_pkm.models import decoding
from keras_pkm.optimizers import PKMAdam
from tests.any_backbone.tiny_families import ALL
from tests.any_backbone.tiny_families import CAUSAL
from tests.any_backbone.tiny_families import FILLED
from tests.any_backbone.tiny_families import LENGTH
from tests.any_backbone.tiny_families import MEMORY
from tests.any_backbone.tiny_families import fit
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_causal_lm
from tests.any_backbone.tiny_families import make_plain
from tests.any_backbone.tiny_families import outputs_of
from tests.contracts import to_numpy
from tests.kinds import KINDS
from tests.slow_tier import slow_but
from tests.slow_tier import slow_on_tensorflow


def families(names):
    """All families share the code; the others are tried by `.ci/run`."""
    return slow_but("GPT2", names)


def assert_same(model, other, inputs):
    for a, b in zip(outputs_of(model, inputs), outputs_of(other, inputs)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("family", families(ALL))
def test_starts_exactly_as_the_plain_model(family):
    plain = make_plain(family)
    inputs = inputs_of(plain)
    model = keras_pkm.models.add_memory(plain, (1, 2), MEMORY)
    assert_same(model, plain, inputs)
    assert sorted(model.memory_outputs) == [1, 2]
    for number in (1, 2):
        values = model.transformer_layers[number - 1].memory.table.values
        values.assign(np.ones(values.shape))
    changed = outputs_of(model, inputs)
    assert all(np.isfinite(each).all() for each in changed)
    before = outputs_of(plain, inputs)
    # Blocks are followed by a norm: where a memory adds, all changes.
    assert any((a != b).any() for a, b in zip(changed, before))


@pytest.mark.parametrize("family", families(["Bert", "GPT2", "Gemma"]))
def test_one_table_for_all_layers(family):
    plain = make_plain(family)
    inputs = inputs_of(plain)
    model = keras_pkm.models.add_memory(plain, (1, 2), MEMORY, share_table=True)
    assert_same(model, plain, inputs)
    assert len(keras_pkm.models.tables(model)) == 1
    assert sum(each.name == "values" for each in model.weights) == 1


def test_the_memory_is_added_behind_its_block():
    causal_lm = make_causal_lm("GPT2")
    block = causal_lm.backbone.transformer_layers[1]
    x = np.random.default_rng(0).normal(size=(2, 5, 16)).astype("float32")
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    actual, (slots, weights) = block(
        x, decoder_padding_mask=mask, return_memory_access=True
    )
    y = block.block(x, decoder_padding_mask=mask)
    actual, y, slots, weights = map(to_numpy, (actual, y, slots, weights))
    values = to_numpy(block.memory.table.values)
    read = np.einsum("bthk,bthkd->btd", weights, values[slots])
    np.testing.assert_allclose(actual, y + read, atol=1e-5)
    # Padding reads nothing.
    assert not weights[1, 3:].any()
    assert weights[1, :3].sum(-1) == pytest.approx(1)


# FNet has no mask, of which `add_memory` warns.
@pytest.mark.parametrize(
    "family", families([family for family in ALL if family != "FNet"])
)
def test_padding_reads_nothing(family):
    model = keras_pkm.models.add_memory(make_plain(family), (2,), FILLED)
    inputs = inputs_of(model)
    mask = inputs.get("padding_mask")
    if mask is None:
        # The model takes the id 0 for padding.
        mask = np.arange(LENGTH) < np.array([[LENGTH], [LENGTH - 3]])
        inputs["token_ids"] = inputs["token_ids"] * mask
    probe = keras.Model(model.input, model.memory_outputs)
    _, weights = probe(inputs)[2]
    weights = to_numpy(weights).sum((-1, -2))
    # Images stand before the text.
    num_images = weights.shape[1] - LENGTH
    mask = np.pad(mask, ((0, 0), (num_images, 0)), constant_values=1)
    heads = FILLED["num_heads"]
    np.testing.assert_allclose(weights, mask * heads, atol=1e-5)


@slow_on_tensorflow
def test_a_probe_counts_reads_at_images():
    model = keras_pkm.models.add_memory(make_plain("PaliGemma"), (1,), FILLED)
    inputs = inputs_of(model)
    found = keras_pkm.models.MemoryProbe(model).measure(inputs)
    _, weights = keras.Model(model.input, model.memory_outputs)(inputs)[1]
    heads = (to_numpy(weights).sum(-1) > 0).sum()
    assert found[1]["top1_reads"] == heads > 2 * inputs["padding_mask"].sum()


def test_masks_of_images_and_of_decoding():
    model = keras_pkm.models.add_memory(make_plain("PaliGemma"), (1,), FILLED)
    (block, _) = model.transformer_layers
    x = np.ones((2, 3, 16), "float32")
    for length, hidden in ((2, 1), (3, 0)):
        mask = np.ones((2, length), "int32")
        mask[:, 0] = 0
        _, (_, weights) = block(x, mask, return_memory_access=True)
        read = to_numpy(weights).sum((-1, -2))[0] > 0
        assert np.flatnonzero(~read).tolist() == [hidden]
    # It covers the tokens in the cache, which are not in the inputs.
    assert block._padding_mask(x, (x, np.ones((2, 6))), {}) is None


@pytest.mark.parametrize(
    "family", families([*CAUSAL, "Gemma4", "GptOss", "SmolLM3"])
)
@pytest.mark.parametrize("memory", [FILLED, "n-grams"], ids=["keys", "n-grams"])
def test_generation_with_a_cache_is_generation_without(family, memory):
    check_generation(family, memory, "greedy")


@slow_on_tensorflow
@pytest.mark.parametrize("memory", [FILLED, "n-grams"], ids=["keys", "n-grams"])
def test_caches_of_contrastive_search(memory):
    """It takes the likeliest token, but keeps a cache for each of two."""
    sampler = keras_hub.samplers.ContrastiveSampler(k=2, alpha=0.0)
    check_generation("GPT2", memory, sampler)


def check_generation(family, memory, sampler):
    if memory == "n-grams":
        memory = KINDS[memory]()
    causal_lm = make_causal_lm(family, memory)
    causal_lm.compile(sampler=sampler)
    inputs = inputs_of(causal_lm.backbone)
    prompt = {
        "token_ids": inputs["token_ids"],
        "padding_mask": np.tile(np.arange(LENGTH) < 4, (2, 1)).astype("int32"),
    }
    made = causal_lm.generate(prompt, stop_token_ids=None)["token_ids"]
    whole = {
        **inputs,
        "token_ids": made,
        "padding_mask": np.ones((2, LENGTH), "int32"),
    }
    best = to_numpy(causal_lm(whole)).argmax(-1)
    np.testing.assert_array_equal(to_numpy(made)[:, 4:], best[:, 3:-1])


@pytest.mark.parametrize("family", families(CAUSAL))
def test_presets(family, tmp_path):
    causal_lm = make_causal_lm(family)
    causal_lm.save_to_preset(str(tmp_path))
    inputs = inputs_of(causal_lm.backbone)
    plain_cls = getattr(keras_hub.models, f"{family}CausalLM")
    for cls in (keras_hub.models.CausalLM, plain_cls):
        loaded = cls.from_preset(str(tmp_path))
        assert isinstance(loaded, plain_cls)
        assert_same(loaded, causal_lm, inputs)
    backbone = keras_hub.models.Backbone.from_preset(str(tmp_path))
    assert isinstance(backbone, keras_pkm.models.MemoryBackbone)
    with pytest.raises(ValueError, match="subclass of BertMaskedLM"):
        keras_hub.models.BertMaskedLM.from_preset(str(tmp_path))


@pytest.mark.parametrize(
    "own", [True, pytest.param(False, marks=pytest.mark.slow)]
)
def test_presets_keep_the_head(own, tmp_path):
    plain = keras_hub.models.RobertaTextClassifier(
        make_plain("Roberta"), num_classes=3, dropout=0.0
    )
    if own:
        task = keras_pkm.models.add_memory(plain, (1,), MEMORY)
    else:
        backbone = keras_pkm.models.add_memory(plain.backbone, (1,), MEMORY)
        task = keras_hub.models.RobertaTextClassifier(
            backbone, num_classes=3, dropout=0.0
        )
    inputs = inputs_of(plain.backbone)
    if own:
        assert_same(task, plain, inputs)
    task.save_to_preset(str(tmp_path))
    loaded = keras_hub.models.TextClassifier.from_preset(str(tmp_path))
    assert_same(loaded, task, inputs)


def test_presets_keep_tied_embeddings(tmp_path):
    """Llama 3.2's and SmolLM2's, which KerasHub's config leaves out."""
    plain = keras_hub.models.Llama3Backbone(
        50, 2, 2, 16, 32, 2, tie_word_embeddings=True
    )
    model = keras_pkm.models.add_memory(plain, (2,), FILLED)
    model.save_to_preset(str(tmp_path))
    loaded = keras_hub.models.Backbone.from_preset(str(tmp_path))
    assert len(loaded.weights) == len(model.weights)
    assert_same(loaded, model, inputs_of(model))


def test_presets_take_another_dtype(tmp_path):
    make_causal_lm("Llama").save_to_preset(str(tmp_path))
    loaded = keras_hub.models.CausalLM.from_preset(
        str(tmp_path), dtype="bfloat16"
    )
    for layer in loaded.backbone.transformer_layers:
        assert layer.compute_dtype == "bfloat16"
    memory = loaded.backbone.transformer_layers[1].memory
    assert memory.compute_dtype == "bfloat16"


def test_training_changes_the_rows_that_are_read():
    causal_lm = make_causal_lm("GPT2")
    assert isinstance(causal_lm.optimizer, PKMAdam)
    causal_lm.compile(PKMAdam(1e-2, 1e-2), loss=_loss())
    memory = causal_lm.backbone.transformer_layers[1].memory
    probe = keras_pkm.models.MemoryProbe(causal_lm)
    ((_, counts),) = next(
        probe.count_each([(inputs_of(causal_lm.backbone),)])
    ).items()
    before = memory.table.values.numpy()
    losses = fit(causal_lm, steps=1)
    changed = (memory.table.values.numpy() != before).any(axis=1)
    np.testing.assert_array_equal(changed, counts["reads"] > 0)
    assert 0 < changed.sum() < len(changed)
    assert fit(causal_lm, steps=10)[-1] < losses[0]


@pytest.mark.slow
def test_values_of_zero_learn_from_the_first_step_on():
    causal_lm = make_causal_lm("GPT2", memory=MEMORY)
    causal_lm.compile(PKMAdam(1e-2, 1e-2), loss=_loss())
    table = causal_lm.backbone.transformer_layers[1].memory.table
    assert not np.any(table.values)
    fit(causal_lm, steps=1)
    assert np.any(table.values)


@pytest.mark.parametrize(
    "family", ["Llama", pytest.param("GPT2", marks=pytest.mark.slow)]
)
def test_lora_trains_the_plain_part_little_and_the_memory_whole(family):
    causal_lm = make_causal_lm(family)
    causal_lm.backbone.enable_lora(2)
    trained = [each.path for each in causal_lm.backbone.trainable_variables]
    of_memory = [path for path in trained if "_with_memory/" in path]
    lora = [path for path in trained if "lora_kernel" in path]
    assert len(lora) == 8
    assert len(of_memory) == 8
    # KerasHub trains the biases beside the additions, too.
    others = set(trained) - {*of_memory, *lora}
    assert all(path.endswith("/bias") for path in others)


def test_lora_weights_are_written_and_read(tmp_path):
    file = str(tmp_path / "weights.lora.h5")
    first, second = make_causal_lm("GPT2"), make_causal_lm("GPT2")
    first.backbone.enable_lora(2)
    for each in first.backbone.trainable_variables:
        if "lora_kernel" in each.path:
            each.assign(np.ones(each.shape))
    first.backbone.save_lora_weights(file)
    second.backbone.load_lora_weights(file)
    assert_same(first, second, inputs_of(first.backbone))


def test_a_decoder_is_taught_by_its_memory_alone():
    causal_lm = make_causal_lm("GPT2")
    inputs = inputs_of(causal_lm.backbone)
    labels = np.roll(inputs["token_ids"], -1, axis=1)
    before = {each.path: each.numpy() for each in causal_lm.weights}
    teacher = keras_pkm.teaching.MemoryTeacher(
        causal_lm, learning_rate=0.1, loss=_loss()
    )
    weights = inputs["padding_mask"].astype("float32")
    teacher.teach([(inputs, labels, weights)], steps=100)
    best = to_numpy(causal_lm(inputs)).argmax(-1)
    known = (best == labels)[weights > 0]
    assert known.mean() > 0.8
    changed = [
        each.path
        for each in causal_lm.weights
        if (each.numpy() != before[each.path]).any()
    ]
    assert [path.split("/")[-1] for path in changed] == ["values"]


def _loss():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def test_statistics_of_a_batch_are_refused_while_decoding():
    causal_lm = make_causal_lm(
        "GPT2", memory={**FILLED, "query_normalization": "batch"}
    )
    block = causal_lm.backbone.transformer_layers[1]
    x = np.zeros((2, 5, 16), "float32")
    cache = np.zeros((2, 2, 5, 2, 8), "float32")
    arguments = {
        "self_attention_cache": cache,
        "self_attention_cache_update_index": 0,
    }
    block(x, training=False, **arguments)
    with pytest.raises(ValueError, match="`training` must be false"):
        block(x, training=True, **arguments)


def test_a_backbone_that_is_made_frozen_is():
    """As KerasHub's own, for instance by `from_preset(trainable=False)`."""
    model = keras_pkm.models.add_memory(make_plain("GPT2"), (2,), MEMORY)
    frozen = type(model).from_config({**model.get_config(), "trainable": False})
    assert frozen.weights and not frozen.trainable_variables
    task = keras_pkm.models.MemoryGPT2CausalLM(frozen)
    assert not task.trainable_variables
    frozen.trainable = True
    assert len(task.trainable_variables) == len(model.trainable_variables)


def test_what_was_frozen_is_not_when_it_is_loaded():
    """Whatever the plain backbone was when its memory was added."""
    plain = make_plain("GPT2")
    plain.trainable = False
    model = keras_pkm.models.add_memory(plain, (2,), MEMORY)
    model.trainable = False
    model.trainable = True
    copy = type(model).from_config(model.get_config())
    assert len(copy.trainable_variables) == len(model.trainable_variables)
    assert len(copy.trainable_variables) > 20


def test_arguments_of_the_plain_backbone_and_what_is_none():
    plain = make_plain("GPT2")
    model = keras_pkm.models.add_memory(plain, (2,), MEMORY)
    config = model.get_config()
    assert type(model).from_config({**config, "dropout": 0.25}).dropout == 0.25
    with pytest.raises(ValueError, match="Received: `memory_layer`"):
        type(model).from_config({**config, "memory_layer": (1,)})
    with pytest.raises(ValueError, match="`kwargs` must be `name`, `trainabl"):
        keras_pkm.models.MemoryBackbone(plain, memory_layer=(1,))


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
def test_a_head_that_is_quantized_is_refused():
    task = keras_hub.models.BertTextClassifier(make_plain("Bert"), 2)
    task.quantize("int8")
    with pytest.raises(ValueError, match="a head that is neither quantized"):
        keras_pkm.models.add_memory(task, (1,), MEMORY)


@pytest.mark.parametrize(
    "cache", [np.zeros((1, 2, 2, 32, 1, 4)), [(np.zeros((1, 32, 1, 4)),) * 2]]
)
def test_there_is_room_for_the_ids_of_a_whole_cache(cache):
    """Gemma 3 has one for each layer."""
    ids = decoding._no_ids_yet(np.ones((1, 8), "int32"), cache, 0)
    assert ids.shape == (1, 32)


def test_a_causal_task_that_is_not_compiled():
    task = keras_hub.models.GPT2CausalLM(make_plain("GPT2"), compile=False)
    assert keras_pkm.models.memories(
        keras_pkm.models.add_memory(task, (1,), MEMORY)
    )
