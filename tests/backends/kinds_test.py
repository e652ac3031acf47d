"""Each kind of memory in a decoder: trained, saved, generating, taught."""

import keras
import keras_hub
import numpy as np
import pytest

import keras_pkm
from keras_pkm.layers.memories import memories
from keras_pkm.layers.memories import tables
from keras_pkm.optimizers import PKMAdam
from tests.any_backbone.tiny_families import LENGTH
from tests.any_backbone.tiny_families import fit
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_plain
from tests.any_backbone.tiny_families import outputs_of
from tests.contracts import to_numpy
from tests.kinds import KINDS
from tests.slow_tier import but_on_tensorflow
from tests.slow_tier import slow_but
from tests.slow_tier import slow_on_tensorflow

SHARED = "gate, one table"
TAGGED = "gated n-grams with tags"
CASES = [SHARED if kind == "gate" else kind for kind in KINDS]
if keras.backend.backend() == "tensorflow":
    # `tests/conformance` calls, fits and saves the others.
    CASES = slow_but(TAGGED, [SHARED, TAGGED])


def make(kind, family="GPT2", claimed=True, **options):
    plain = getattr(keras_hub.models, f"{family}CausalLM")(make_plain(family))
    keras.utils.set_random_seed(2)
    shared = kind == SHARED
    memory = KINDS["gate" if shared else kind]()
    model = keras_pkm.models.add_memory(
        plain, (1, 2), memory, share_table=shared, **options
    )
    if claimed:
        claim(model, inputs_of(model.backbone)["token_ids"])
    return model


def claim(model, token_ids):
    """Gives rows to the n-grams of the first tokens of each row."""
    for memory in memories(model).values():
        if getattr(memory, "tags", False):
            for ids in token_ids:
                memory.claim(ids[:5], parts=True)


def compiled(model, **options):
    model.compile(
        PKMAdam(1e-2, 1e-2, **options),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[],
    )
    return model


def weights_of(model):
    return [np.array(to_numpy(weight)) for weight in model.weights]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.fixture(params=CASES, scope="module")
def trained(request):
    """A model after some steps, and the losses of these."""
    model = compiled(make(request.param))
    before = weights_of(model)
    losses = fit(model, steps=4)
    return request.param, model, before, losses


def test_trained_row_by_row(trained):
    kind, model, before, losses = trained
    assert losses[-1] < losses[0]
    inputs = inputs_of(model.backbone)
    (counts,) = keras_pkm.models.MemoryProbe(model).count_each([(inputs,)])
    started = {
        id(weight): old
        for weight, old in zip(model.weights, before, strict=True)
    }
    of_tables = {}
    for number, memory in memories(model).items():
        key, nothing = id(memory.table.values), np.zeros(memory.num_slots)
        read = of_tables.setdefault(key, nothing)
        read += counts[number]["reads"]
    for table in tables(model).values():
        new, old = to_numpy(table.values), started[id(table.values)]
        changed = (new != old).any(1)
        assert changed.any() and not changed.all()
        if "n-grams" in kind:
            # Their reads do not change as the model learns.
            read = of_tables[id(table.values)] > 0
            np.testing.assert_array_equal(changed, read)


def test_saved(trained, tmp_path):
    kind, model, *_ = trained
    inputs = inputs_of(model.backbone)
    expected = outputs_of(model, inputs)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(str(tmp_path / "preset"))
    if kind == SHARED:
        # It clones layer by layer.
        with pytest.raises(ValueError, match="clone them by `from_config`"):
            keras.models.clone_model(model.backbone)
        clone = type(model.backbone).from_config(model.backbone.get_config())
    else:
        clone = keras.models.clone_model(model.backbone)
    clone.set_weights(model.backbone.get_weights())
    copies = [
        keras.models.load_model(tmp_path / "model.keras"),
        keras_hub.models.CausalLM.from_preset(str(tmp_path / "preset")),
    ]
    for copy in copies:
        assert same(outputs_of(copy, inputs), expected)
    assert same(outputs_of(clone, inputs), outputs_of(model.backbone, inputs))
    for copy in (*copies, clone):
        found = {id(memory.table) for memory in memories(copy).values()}
        assert len(found) == (1 if kind == SHARED else 2)
        assert len(copy.weights) in (len(model.weights), len(clone.weights))


@pytest.mark.parametrize("sampler", but_on_tensorflow("greedy", ["beam"]))
def test_generated_with_a_cache_as_without(trained, sampler):
    _, model, *_ = trained
    inputs = inputs_of(model.backbone)
    ids = inputs["token_ids"][:1]
    prompt = {
        "token_ids": ids,
        "padding_mask": (np.arange(LENGTH) < 4).astype("int32")[None],
    }
    num_beams = 1 if sampler == "greedy" else 3
    made = {
        "greedy": keras_hub.samplers.GreedySampler(),
        "beam": keras_hub.samplers.BeamSampler(num_beams=num_beams),
    }[sampler]
    model.compile(sampler=made)
    found = model.generate(prompt, stop_token_ids=None)["token_ids"]
    beams = [(0.0, list(ids[0, :4]))]
    for _ in range(4, LENGTH):
        grown = []
        for score, known in beams:
            padded = np.zeros((1, LENGTH), "int32")
            padded[0, : len(known)] = known
            logits = to_numpy(
                model(
                    {
                        "token_ids": padded,
                        "padding_mask": np.ones((1, LENGTH), "int32"),
                    }
                )
            )[0, len(known) - 1].astype("float64")
            log_p = logits - np.log(np.exp(logits).sum())
            grown += [(score + p, [*known, t]) for t, p in enumerate(log_p)]
        beams = sorted(grown, key=lambda beam: -beam[0])[:num_beams]
    assert to_numpy(found)[0].tolist() == beams[0][1]


def test_scored_as_called(trained):
    _, model, *_ = trained
    inputs = inputs_of(model.backbone)
    (expected,) = outputs_of(model, inputs)
    found = to_numpy(model.score(inputs["token_ids"], inputs["padding_mask"]))
    padded = inputs["padding_mask"] == 0
    np.testing.assert_allclose(found[~padded], expected[~padded], atol=1e-5)


@pytest.mark.parametrize("kind", CASES)
def test_taught_patched_and_reverted(kind, tmp_path):
    model = compiled(make(kind, claimed=False))
    inputs = inputs_of(model.backbone)
    labels = np.roll(inputs["token_ids"], -1, axis=1)
    start = outputs_of(model, inputs)
    before = weights_of(model)
    teacher = keras_pkm.teaching.MemoryTeacher(model, learning_rate=0.1)
    claim(model, inputs["token_ids"][:1])
    teacher.teach([(inputs, labels)], steps=3)
    patch = teacher.make_patch()
    after = weights_of(model)
    assert not same(before, after)
    for weight, old in zip(model.weights, before, strict=True):
        if weight.name not in ("values", "tags"):
            np.testing.assert_array_equal(to_numpy(weight), old)
    if kind == TAGGED:
        (found,), (old,) = outputs_of(model, inputs), start
        assert not same(found[0], old[0])
        # Nothing that stands before the first n-gram that was taught.
        taught = set(inputs["token_ids"][0][:5].tolist())
        others = inputs["token_ids"][1].tolist()
        first = next(i for i, each in enumerate(others) if each in taught)
        assert first > 0
        np.testing.assert_array_equal(found[1, :first], old[1, :first])
    path = tmp_path / "patch.safetensors"
    patch.save(path)
    patch.revert(model)
    assert same(weights_of(model), before)
    loaded = keras_pkm.teaching.MemoryPatch.load(path)
    loaded.apply(model)
    assert same(weights_of(model), after)
    with pytest.raises(ValueError, match="has already been applied"):
        loaded.apply(model)


@pytest.mark.parametrize("kind", CASES)
def test_without_its_values_it_is_the_plain_model(kind):
    model = make(kind)
    inputs = inputs_of(model.backbone)
    plain = outputs_of(model.backbone.plain_backbone, inputs)
    assert not same(outputs_of(model.backbone, inputs), plain)
    for table in tables(model).values():
        table.values.assign(np.zeros(table.values.shape))
    assert same(outputs_of(model.backbone, inputs), plain)


@slow_on_tensorflow
@pytest.mark.parametrize("kind", ["gate", TAGGED])
def test_mixed_precision(kind):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = compiled(make(kind))
        losses = fit(model, steps=4)
    finally:
        keras.config.set_dtype_policy("float32")
    (memory, _) = memories(model).values()
    assert memory.compute_dtype == "bfloat16"
    assert memory.table.values.dtype == "float32"
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


def test_fit_of_a_task_without_a_claimed_row_is_an_error():
    model = compiled(make(TAGGED, claimed=False))
    inputs = inputs_of(model.backbone)
    with pytest.raises(ValueError, match="Call `claim` of its memory"):
        model.fit(inputs, inputs["token_ids"], verbose=0)


def test_a_cache_in_parts():
    """A text that is given in two parts has the logits of the whole."""
    model = make("n-grams")
    ids = inputs_of(model.backbone)["token_ids"]
    expected = to_numpy(model(inputs_of(model.backbone)))
    empty = np.zeros((2, 2, 2, LENGTH, 2, 8), "float32")
    first, _, cache = model.call_with_cache(ids[:, :3], empty, 0)
    second, *_ = model.call_with_cache(ids[:, 3:], cache, 3)
    found = np.concatenate(list(map(to_numpy, (first, second))), axis=1)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
    with pytest.raises(ValueError, match="Begin with an empty cache"):
        model.call_with_cache(ids[:, 3:], empty, 3)


def test_images_have_no_ids():
    with pytest.raises(ValueError, match="`PaliGemmaBackbone`"):
        keras_pkm.models.add_memory(
            make_plain("PaliGemma"), (2,), KINDS["n-grams"]()
        )


def test_decoding_that_would_leave_the_memory_out_is_an_error():
    backbone = keras_pkm.models.add_memory(
        make_plain("Qwen3_5"), (2,), KINDS["product keys"]()
    )
    block = backbone.transformer_layers[1]
    assert block.layer_type == block.block.layer_type
    with pytest.raises(AttributeError, match="cannot generate with memories"):
        block.call_and_update_cache()
