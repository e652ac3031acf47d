"""`keras_pkm.export` as a library: what it takes, and what it refuses."""

import json

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from keras_pkm.export import smaller
from keras_pkm.export.encoder import Encoder
from keras_pkm.export.smaller import make_encoder
from keras_pkm.export.smaller import silent
from keras_pkm.teaching.memory_patch import copy_tables
from keras_pkm.text.special_tokens import SpecialTokens
from tests.any_backbone.tiny_families import FILLED
from tests.any_backbone.tiny_families import MEMORY
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_plain
from tests.any_backbone.tiny_families import outputs_of
from tests.contracts import fresh_rng
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import SIZES
from tests.models.tiny import tiny_answerer
from tests.models.tiny import tiny_backbone
from tests.models.tiny import tiny_classifier
from tests.models.tiny import tiny_masked_lm

export = keras_pkm.export


@pytest.fixture
def masked_lm(tokenizer):
    task = tiny_masked_lm(num_layers=2, memory_layers=(1, 2))
    task.preprocessor = keras_hub.models.BertMaskedLMPreprocessor(
        tokenizer, sequence_length=12
    )
    return task


@pytest.mark.slow
def test_the_kind_is_that_of_the_task(tokenizer, tmp_path):
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        tokenizer, sequence_length=9
    )
    for number, (model, what, given) in enumerate(
        (
            (tiny_backbone(**ONE_LAYER), "encoder", {}),
            (preprocessor, "preprocessor", {}),
            (tokenizer, "preprocessor", {"sequence_length": 9}),
            (
                tiny_classifier(3, **ONE_LAYER),
                "classifier",
                {"tokenizer": tokenizer},
            ),
        )
    ):
        path = tmp_path / str(number)
        exported = export.saved_model(model, path, **given)
        assert (exported.what, exported.path) == (what, path)
        assert exported.size > 1000 and not exported.change
        loaded = tf.saved_model.load(str(path))
        if what == "preprocessor":
            assert loaded(["ann"])["input_mask"].shape == (1, 9)
    assert loaded(["ann"])["label"].numpy()[0] in (b"0", b"1", b"2")
    # A backbone has no vocabulary.
    assert not list((tmp_path / "0" / "assets").glob("*"))


@pytest.mark.slow
def test_a_plain_task_and_all_that_the_card_says(tokenizer, tmp_path):
    task = keras_hub.models.BertMaskedLM(
        keras_hub.models.BertBackbone(**{**SIZES, "num_layers": 1}),
        keras_hub.models.BertMaskedLMPreprocessor(tokenizer, sequence_length=4),
    )
    exported = export.saved_model(
        task,
        tmp_path / "served",
        name="the model",
        recipe={"epochs": 7},
        report="| perplexity |",
    )
    assert exported.what == "mlm"
    card = (tmp_path / "served" / "README.md").read_text()
    for part in ("from `the model`", '"epochs": 7', "| perplexity |"):
        assert part in card
    loaded = tf.saved_model.load(str(tmp_path / "served"))
    assert loaded(["a [MASK]"])["tokens"].shape == (1, 1, 5)


def test_mistakes_name_arguments(masked_lm, tokenizer, tmp_path):
    roberta = keras_hub.models.RobertaTokenizer(
        {"<s>": 0, "<pad>": 1, "</s>": 2, "<mask>": 3, "a": 4, "aa": 5}, ["a a"]
    )
    plain = keras_hub.models.BertBackbone(**SIZES)
    some = {"compare": ["ann"]}
    for task, given, message in (
        (masked_lm, {"what": "decoder"}, "`what` must be one of"),
        (masked_lm, {"what": "qa"}, "`task` must be a QuestionAnswerer for `w"),
        (masked_lm, {"values_dtype": "int4"}, "`values_dtype` must be one of"),
        (masked_lm, {"sequence_length": 2}, "`sequence_length` must be at lea"),
        (masked_lm, {"texts": 2, "sequence_length": 7}, "must be at least 8"),
        (masked_lm, {"sequence_length": 8.5}, "`sequence_length` must be at "),
        (masked_lm, {"sequence_length": 21}, "at most the model's 20"),
        (masked_lm, {"stride": 0}, "`stride` must be at least 1"),
        (masked_lm, {"texts": 3}, "`texts` must be 1 or 2"),
        (masked_lm, {"texts": 2}, "`texts` would do nothing with `what` mlm"),
        (masked_lm, {"labels": ["a"]}, "`labels` would do nothing with"),
        (masked_lm, {"stride": 9}, "`stride` would do nothing with"),
        (
            tokenizer,
            {"values_dtype": "int8"},
            "`values_dtype` would do nothing with `what` preprocessor",
        ),
        (plain, {"values_dtype": "bfloat16"}, "`values_dtype` needs a model w"),
        (
            tiny_backbone(),
            {"sequence_length": 9},
            "`sequence_length` would do nothing with `what` encoder",
        ),
        (make_plain("Gemma4"), {}, "`task` must have the inputs.*position_ids"),
        (masked_lm, {"keep_top": 50}, "`keep_top` needs text.*`prune_unused`"),
        (masked_lm, {"compare": "ann"}, "`compare` must be a sequence of str"),
        (masked_lm, {"compare": [""]}, "`compare` must contain text"),
        (masked_lm, {"prune_unused": ["a"]}, "`prune_unused` needs text of tw"),
        (
            masked_lm,
            {"tokenizer": roberta},
            "`tokenizer` must have .*WordPiece.*RobertaTokenizer: pas",
        ),
        (tiny_classifier(3), {}, "preprocessor with a tokenizer, but has none"),
        (
            tiny_classifier(3),
            {"tokenizer": tokenizer, "labels": ["a"]},
            "`labels` must name the model's 3 classes, received 1: a",
        ),
        (
            tiny_classifier(1),
            {"tokenizer": tokenizer},
            "at least two classes, received 1: a number",
        ),
        (
            tiny_classifier(2),
            {"tokenizer": tokenizer, "texts": 2, **some},
            "`compare` must be left out for models of two texts",
        ),
        (
            tiny_answerer(),
            {"tokenizer": tokenizer, "prune_unused": ["ann", "bob"]},
            "`prune_unused` must be left out for models of two texts",
        ),
        (
            keras_hub.models.BertTextClassifierPreprocessor(
                tokenizer, truncate="waterfall"
            ),
            {},
            "truncate='round_robin', received 'waterfall'",
        ),
        (plain, some, "need a model with memory"),
        (tiny_backbone(), some, "need a tokenizer.*pass `tokenizer`"),
        (object(), {}, "`task` must be a task or a backbone.* a object"),
    ):
        with pytest.raises(ValueError, match=message):
            export.saved_model(task, tmp_path / "out", **given)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(ValueError, match="`path` must be new or empty"):
            export.saved_model(masked_lm, path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["Llama", "RoformerV2"])
def test_models_that_take_any_length(family, tmp_path):
    model = keras_pkm.models.add_memory(make_plain(family), (1,), FILLED)
    export.saved_model(model, tmp_path / "served")
    inputs = inputs_of(model)
    ids = tf.constant(inputs["token_ids"], tf.int32)
    mask = inputs.get("padding_mask", np.ones_like(ids))
    served = tf.saved_model.load(str(tmp_path / "served"))(
        {
            "input_word_ids": ids,
            "input_mask": tf.constant(mask, tf.int32),
            "input_type_ids": tf.zeros_like(ids),
        }
    )
    expected = outputs_of(model, inputs)[0]
    found = served["sequence_output"]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_models_that_cannot_be_traced(tmp_path):
    with pytest.raises(ValueError, match="can trace for.* `Qwen3_5Backbone`"):
        export.saved_model(make_plain("Qwen3_5"), tmp_path / "served")


def test_each_token_is_masked_in_one_draw(tokenizer):
    special = SpecialTokens.of(tokenizer)
    ids = np.full((6, 9), tokenizer.token_to_id("ann"), "int32")
    ids[:, 0] = special.start
    draws = [
        smaller._mask({"input_word_ids": ids}, special, draw)["labels"] >= 0
        for draw in range(smaller._DRAWS)
    ]
    assert (np.sum(draws, axis=0) == (ids != special.start)).all()


def test_slots_that_only_masks_read_are_kept(masked_lm, tokenizer):
    """The exported model reads nothing but text with masks."""
    for table in keras_pkm.models.tables(masked_lm).values():
        table.values.assign(fresh_rng().normal(size=table.values.shape))
    texts = ["ann met bob", "who", "the fox met the dog"] * 4
    _, change = make_encoder(
        *(masked_lm.backbone, masked_lm, tokenizer, 12, "float32"),
        *(texts, 100.0, texts, silent),
    )
    (line,) = [each for each in change.splitlines() if "perplexity of" in each]
    _, _, before, after, _ = line.split("|")
    assert before == after
    assert "of the encoder's outputs | - | 0.00% |" in change
    (rows,) = [each for each in change.splitlines() if "layer 1" in each]
    # And others are left out.
    assert "| 121 | 121 |" not in rows


@pytest.mark.slow
def test_patches_and_usage(masked_lm, tmp_path):
    served, newer, back = (tmp_path / name for name in ("a", "b", "c"))
    export.saved_model(masked_lm, served, prune_unused=())
    before = copy_tables(masked_lm)
    tables = keras_pkm.models.tables(masked_lm)
    for table in tables.values():
        table.values.assign_add(np.ones(table.values.shape))
    patch = keras_pkm.teaching.MemoryPatch.since(before, masked_lm)
    assert export.patch(served, patch, newer) == patch.num_rows == 242
    patch.save(tmp_path / "p.safetensors")
    file = tmp_path / "p.safetensors"
    assert export.patch(newer, file, back, revert=True) == 242
    scores = [
        tf.saved_model.load(str(path))(["the [MASK]"])["scores"].numpy()
        for path in (served, newer, back)
    ]
    np.testing.assert_array_equal(scores[0], scores[2])
    assert not np.array_equal(scores[0], scores[1])
    with pytest.raises(ValueError, match="`patch`: .*already been applied"):
        export.patch(newer, patch, tmp_path / "d")
    with pytest.raises(ValueError, match="`model` must be the directory of an"):
        export.patch(tmp_path, patch, tmp_path / "d")
    with pytest.raises(ValueError, match="`path` must be new or empty"):
        export.patch(served, patch, newer)

    shown = []

    def progress(batches, title):
        shown.append((len(batches), title))
        return batches

    texts = ["the fox", "ann met bob", "who"]
    usage, num_slots = export.memory_usage(
        served, texts, batch_size=2, progress=progress
    )
    assert num_slots == {1: 121, 2: 121} and usage.keys() == {1, 2}
    assert shown == [(2, "Usage")]
    assert json.loads(json.dumps(usage))["1"]["mu"] > 0
    for given, message in (
        ((tmp_path, texts), "`model`, or `preprocessor`, cannot be used"),
        ((served, []), "`text` must contain text"),
        ((served, "the fox"), "`text` must be a sequence of strings"),
    ):
        with pytest.raises(ValueError, match=message):
            export.memory_usage(*given)
    with pytest.raises(ValueError, match="`batch_size` must be at least 1"):
        export.memory_usage(served, texts, batch_size=0)
    # The licence is filled in.
    card = served / "README.md"
    card.write_text(card.read_text().replace("(to be filled in)", "MIT"))
    again, _ = export.memory_usage(served, texts, batch_size=2)
    assert again == usage
    card = newer / "README.md"
    card.write_text(card.read_text().replace("(to be filled in)", "MIT"))
    export.memory_usage(newer, texts)


@pytest.mark.slow
def test_pruning_keeps_the_keys_of_a_memory_of_facts(tokenizer, tmp_path):
    """No token reads them as a row, and all are compared with them."""
    plain = keras_hub.models.BertMaskedLM(
        keras_hub.models.BertBackbone(**{**SIZES, "num_layers": 1})
    )
    memory = keras_pkm.layers.FactMemory(200, num_keys=4)
    task = keras_pkm.models.add_memory(plain, (1,), memory)
    (memory,) = keras_pkm.models.memories(task).values()
    task.preprocessor = keras_hub.models.BertMaskedLMPreprocessor(
        tokenizer, sequence_length=12
    )
    ids = np.array([[2, tokenizer.token_to_id("ann"), 4, 3]])
    asked = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
    }
    before = task.backbone(asked)["sequence_output"].numpy()
    key = memory.claim_key("home")
    slot = memory.claim([tokenizer.token_to_id("ann")], key)
    row = np.full(memory.table.value_dim, 3.0)
    memory.write([key, slot], [np.append(0 * row[:-1], 1.0), row])
    texts = ["ann met bob", "the fox", "who [MASK]"]
    scores = []
    for name, chosen in (("whole", ()), ("pruned", texts)):
        given = {"prune_unused": chosen, "compare": texts} if chosen else {}
        export.saved_model(task, tmp_path / name, **given)
        loaded = tf.saved_model.load(str(tmp_path / name))
        scores.append(loaded(["ann [MASK]"])["scores"].numpy())
    np.testing.assert_array_equal(*scores)
    with pytest.raises(ValueError, match="for a memory of facts"):
        export.saved_model(task, tmp_path / "int8", values_dtype="int8")
    assert (task.backbone(asked)["sequence_output"].numpy() != before).any()


def test_facts_that_are_left_out_do_not_fit_better():
    """Whose bias was so low that the others are read."""
    plain = keras_hub.models.BertBackbone(**{**SIZES, "num_layers": 1})
    model = keras_pkm.models.add_memory(
        plain, (1,), keras_pkm.layers.FactMemory(200, num_keys=4)
    )
    (memory,) = keras_pkm.models.memories(model).values()
    keys = [memory.claim_key(name) for name in ("home", "work")]
    slots = [memory.claim([5], key) for key in keys]
    zeros = np.zeros(memory.table.value_dim - 1)
    # The first fits by 2 - 3, the second by 1.
    biases = (2, 1, -3, 0)
    memory.write([*keys, *slots], [np.append(zeros, bias) for bias in biases])
    kept = np.ones(200, bool)
    kept[slots[0]] = False
    ids = tf.constant([[2, 5, 6, 3]])
    inputs = {"input_word_ids": ids, "input_mask": tf.ones_like(ids)}
    inputs["input_type_ids"] = tf.zeros_like(ids)
    for encoder in (Encoder(model), Encoder(model, kept={1: kept})):
        read, weights = encoder(inputs)["memory_access"][1]
        read = read.numpy()[weights.numpy() > 0]
        assert len(read) and set(read.tolist()) == {slots[1]}


@pytest.mark.parametrize(
    "memory",
    [
        keras_pkm.layers.FactMemory(200, num_keys=4),
        keras_pkm.layers.NGramMemory(200, orders=(2,), tags=True),
    ],
)
def test_rows_can_be_claimed_after_the_export(memory):
    plain = keras_hub.models.BertBackbone(**{**SIZES, "num_layers": 1})
    model = keras_pkm.models.add_memory(plain, (1,), memory)
    encoder = Encoder(model)
    ids = tf.constant([[2, 5, 6, 3]])
    inputs = {"input_word_ids": ids, "input_mask": tf.ones_like(ids)}
    inputs["input_type_ids"] = tf.zeros_like(ids)
    assert encoder(inputs, training=True)["sequence_output"].shape[1] == 4
    with pytest.raises(ValueError, match="that n-grams have claimed"):
        model(encoder.features_of(inputs), training=True)


@pytest.mark.slow
def test_facts_that_others_need_are_not_taken_back(tmp_path):
    """As in the trained model itself."""
    plain = keras_hub.models.BertBackbone(**{**SIZES, "num_layers": 1})
    model = keras_pkm.models.add_memory(
        plain, (1,), keras_pkm.layers.FactMemory(200, num_keys=4)
    )
    (memory,) = keras_pkm.models.memories(model).values()
    patches = []
    for subject in (5, 6):
        before = copy_tables(model)
        key = memory.claim_key("home")
        slot = memory.claim([subject], key)
        memory.write([key, slot], np.ones((2, memory.table.value_dim)))
        patches.append(keras_pkm.teaching.MemoryPatch.since(before, model))
    export.saved_model(model, tmp_path / "both")
    with pytest.raises(ValueError, match="revert the later patches first"):
        export.patch(
            tmp_path / "both", patches[0], tmp_path / "one", revert=True
        )
    for number, patch in enumerate(reversed(patches)):
        source = tmp_path / ("back-0" if number else "both")
        out = tmp_path / f"back-{number}"
        assert export.patch(source, patch, out, revert=True) == 2 - (not number)


def test_a_causal_model_is_compared_on_its_own_inputs():
    """Without a mask, and without an end behind each text."""
    words = ["<|endoftext|>", *"abcdĠ", "ab"]
    tokenizer = keras_hub.models.GPT2Tokenizer(
        {word: number for number, word in enumerate(words)}, ["a b"]
    )
    model = keras_pkm.models.add_memory(make_plain("GPT2"), (1,), MEMORY)
    seen = []

    def progress(batches, title):
        seen.extend(batches)
        return batches

    _, change = make_encoder(
        *(model, None, tokenizer, 6, "int8", (), 100.0, ["a b", "c"], progress)
    )
    assert "change of the encoder's outputs" in change
    assert seen[0]["input_word_ids"].tolist() == [
        [0, 1, 5, 2, 0, 0],
        [0, 3, 0, 0, 0, 0],
    ]
    assert seen[0]["input_mask"].sum(1).tolist() == [4, 2]


def test_a_causal_text_is_represented_by_its_last_token(tmp_path):
    """The first one knows of no other."""
    plain = make_plain("GPT2")
    model = keras_pkm.models.add_memory(plain, (1,), MEMORY)
    encoder = Encoder(model)
    ids = tf.constant([[3, 4, 5, 0], [0, 0, 3, 6]])
    mask = tf.constant([[1, 1, 1, 0], [0, 0, 1, 1]])
    found = encoder({"input_word_ids": ids, "input_mask": mask})
    sequence = found["sequence_output"].numpy()
    np.testing.assert_array_equal(
        found["pooled_output"], [sequence[0, 2], sequence[1, 3]]
    )
