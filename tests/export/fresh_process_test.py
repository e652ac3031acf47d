"""Exported models in a process that has never heard of this project."""

import pathlib
import subprocess
import sys

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm import models
from keras_pkm.export.encoder import INPUTS
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.windows import WindowSizes
from tests.export.conftest import LENGTH
from tests.export.loaders import LOADERS
from tests.models.tiny import features
from training.corpora.offset_tokenizer import OffsetTokenizer
from training.tasks import squad_windows
from training.tasks.bad_rows import BadRows
from training.tasks.squad import SquadExample

pytest.importorskip("tensorflow_hub")
pytest.importorskip("tf_keras")
# Four loaders and all kinds of models. That a process without our code loads
# some of them is in tests/export/readme_test.py.
pytestmark = pytest.mark.slow

TEXTS = [
    "the quick brown fox jumped over the lazy dog",
    "",
    "Café in PARIS: 1999!",
    # As a context, in more windows than are computed at a time.
    "who met bob, ann? " * 40,
    "日本語 straße",
    "ann",
    "...",
]
GAPS = ["the [MASK] fox", "no gap", "[MASK][MASK] dog", "", "a [MASK]."] * 2
QUESTIONS = ["who met bob?", "", "what?", "who met", "when?" * 30, "a", "e"]
FIRST = "encoder@1x5"
SHAPES = [(1, 5), (7, 12), (1, 20), (7, 4)]


@pytest.fixture(scope="module")
def inputs():
    found = {}
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        batch = {
            name: array.astype("int32")
            for name, array in features(rng, *shape).items()
        }
        for theirs, ours in INPUTS.items():
            found[f"encoder@{shape[0]}x{shape[1]}/{theirs}"] = batch[ours]
    text = np.array(TEXTS)
    found["preprocessor/sentences"] = text
    found["mlm/sentences"] = np.array(GAPS)
    found["mlm@1/sentences"] = np.array(GAPS[:1])
    found["classifier/text"] = text
    found["classifier/text_pair"] = text[::-1]
    found["classifier@1/text"] = text[:1]
    found["classifier@1/text_pair"] = text[2:3]
    found["qa/question"] = np.array(QUESTIONS)
    found["qa/context"] = text
    found["qa@1/question"] = np.array(QUESTIONS[3:4])
    found["qa@1/context"] = text[3:4]
    return {
        name: np.char.encode(value, "utf-8")
        if value.dtype.kind == "U"
        else value
        for name, value in found.items()
    }


@pytest.fixture(scope="module")
def outputs(exports, inputs, tmp_path_factory):
    """What the loaders say, by kind, loader and name."""
    root = tmp_path_factory.mktemp("outputs")
    np.savez(root / "inputs.npz", **inputs)
    script = pathlib.Path(__file__).with_name("load_anywhere.py")
    result = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", script, exports),
            *(root / "inputs.npz", root / "outputs.npz"),
        ],
        capture_output=True,
        text=True,
        # Not in the project, which would be on the path.
        cwd=root,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    with np.load(root / "outputs.npz", allow_pickle=True) as stored:
        return dict(stored)


def loaders_of(case):
    """Those that ran a case; the command line runs the first of a kind."""
    kind, _, variant = case.partition("@")
    tried = LOADERS[kind]
    if variant and case != FIRST:
        return [each for each in tried if each != "saved_model_cli"]
    return tried


def agree(outputs, kind, name, expected, atol=1e-5):
    for loader in loaders_of(kind):
        # It runs signatures, which have tensors only.
        if loader == "saved_model_cli" and "/" in name:
            continue
        found = outputs[f"{kind}/{loader}/{name}"]
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(
                found, expected, atol=atol, err_msg=f"{kind}/{loader}/{name}"
            )
        else:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_encoder(outputs, inputs, presets, shape):
    kind = f"encoder@{shape[0]}x{shape[1]}"
    task = keras_hub.models.MaskedLM.from_preset(str(presets / "mlm"))
    x = {ours: inputs[f"{kind}/{theirs}"] for theirs, ours in INPUTS.items()}
    expected = task.backbone(x)
    for name in ("sequence_output", "pooled_output"):
        agree(outputs, kind, name, expected[name].numpy())
    agree(outputs, kind, "default", expected["pooled_output"].numpy())
    last = len(task.backbone.transformer_layers) - 1
    agree(
        outputs,
        kind,
        f"encoder_outputs/{last}",
        expected["sequence_output"].numpy(),
    )
    probe = keras.Model(task.backbone.inputs, task.backbone.memory_outputs)
    for number, (slots, weights) in probe(x).items():
        access = f"{kind}/memory_access"
        np.testing.assert_array_equal(
            outputs[f"{access}/slots_{number}"], slots
        )
        np.testing.assert_allclose(
            outputs[f"{access}/weights_{number}"], weights, atol=1e-5
        )
        assert outputs[f"{access}/num_slots_{number}"] == 121
    if shape == (7, 12):
        positions = np.array([[1, 2]] * 7)
        logits = task({**x, "mask_positions": positions})
        np.testing.assert_allclose(
            outputs[f"{kind}/mlm/mlm_logits"], logits, atol=1e-5
        )


def test_preprocessor(outputs, tokenizer):
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        tokenizer, sequence_length=LENGTH
    )
    expected = preprocessor(TEXTS)
    for theirs, ours in INPUTS.items():
        agree(
            outputs,
            "preprocessor",
            theirs,
            np.asarray(expected[ours]).astype("int32"),
        )
    found = outputs["preprocessor/bert_pack_inputs/input_word_ids"]
    assert found.shape == (len(TEXTS), 9)
    assert found[5].tolist() == [2, 18, 3, 18, 3, 0, 0, 0, 0]
    special = SpecialTokens.of(tokenizer)
    for name, value in (
        ("start_of_sequence_id", special.start),
        ("end_of_segment_id", special.end),
        ("padding_id", special.padding),
        ("mask_id", special.mask),
        ("vocab_size", 100),
    ):
        assert outputs[f"preprocessor/special/{name}"] == value


@pytest.mark.parametrize("kind, count", [("mlm", len(GAPS)), ("mlm@1", 1)])
def test_gaps(outputs, presets, tokenizer, kind, count):
    task = keras_hub.models.MaskedLM.from_preset(str(presets / "mlm"))
    tokens = outputs[f"{kind}/hub.load/tokens"]
    assert tokens.shape == (count, 1 if count == 1 else 2, 5)
    the, fox = tokenizer("the fox")
    logits = task(
        {
            "token_ids": np.array([[2, the, 4, fox, 3]]),
            "segment_ids": np.zeros((1, 5)),
            "padding_mask": np.ones((1, 5)),
            "mask_positions": np.array([[2]]),
        }
    )
    scores, ids = tf.math.top_k(tf.nn.softmax(logits[0, 0]), 5)
    vocabulary = np.array(tokenizer.get_vocabulary())
    for loader in loaders_of(kind):
        tokens = outputs[f"{kind}/{loader}/tokens"]
        assert [t.decode() for t in tokens[0, 0]] == list(vocabulary[ids])
        found = outputs[f"{kind}/{loader}/scores"]
        np.testing.assert_allclose(found[0, 0], scores, atol=1e-5)
        is_gap = [gaps.count("[MASK]") for gaps in GAPS[:count]]
        assert (tokens != b"").all(-1).sum(-1).tolist() == is_gap
        assert (found > 0).all(-1).sum(-1).tolist() == is_gap


@pytest.mark.parametrize("kind", ["classifier", "classifier@1"])
def test_classifier(outputs, inputs, presets, kind):
    task = keras_hub.models.TextClassifier.from_preset(
        str(presets / "classifier")
    )
    texts = [
        [text.decode() for text in inputs[f"{kind}/{name}"]]
        for name in ("text", "text_pair")
    ]
    data = tf.data.Dataset.from_tensor_slices(tuple(texts)).batch(7)
    scores = tf.nn.softmax(task.predict(data.map(lambda *x: (x,)), verbose=0))
    agree(outputs, kind, "scores", scores.numpy())
    agree(outputs, kind, "score", scores.numpy().max(-1))
    classes = np.array([b"no", b"maybe", b"yes"], object)
    agree(outputs, kind, "label", classes[scores.numpy().argmax(-1)])
    agree(outputs, kind, "classes", np.array([classes] * len(scores)))


@pytest.mark.parametrize("kind", ["qa", "qa@1"])
def test_question_answerer(outputs, inputs, presets, tokenizer, kind):
    task = models.QuestionAnswerer.from_preset(str(presets / "qa"))
    sizes = WindowSizes(LENGTH, 4, 5)
    with_offsets = OffsetTokenizer(tokenizer)
    num_windows = []
    for row, (question, context) in enumerate(
        zip(inputs[f"{kind}/question"], inputs[f"{kind}/context"])
    ):
        question = question.decode()
        # The graph cuts questions that leave no room.
        is_cut = question.count("?") > 1
        question = question.partition("?")[0] if is_cut else question
        example = SquadExample("0", question, context.decode(), ("",), (0,))
        windows = squad_windows.make_windows(
            [example],
            with_offsets,
            SpecialTokens.of(tokenizer),
            sizes,
            "a file",
            BadRows(),
            progress=False,
        )
        x = {name: getattr(windows, name) for name in INPUTS.values()}
        num_windows.append(len(x["token_ids"]))
        logits = {name: value.numpy() for name, value in task(x).items()}
        best = squad_windows.best_answers(
            [example], windows, logits["start"], logits["end"], sizes
        )["0"][0]
        for loader in loaders_of(kind):
            found = {
                name: outputs[f"{kind}/{loader}/{name}"][row]
                for name in ("answer", "start", "end", "score")
            }
            if not is_cut:
                assert found["answer"].decode() == best["text"]
            text = context.decode()[found["start"] : found["end"]]
            assert found["answer"].decode() == text
            assert (found["score"] > 0) == bool(text)
    assert max(num_windows) > 32, num_windows


def test_a_step_of_fine_tuning(outputs):
    """The gradient of a table has the rows that were read."""
    sparse = [key for key in outputs if key.endswith("is_sparse")]
    assert len(sparse) == 2
    for key in sparse:
        assert outputs[key]
        rows = outputs[key.replace("is_sparse", "rows")]
        assert rows.min() >= 0 and rows.max() < 121
    assert outputs["training/losses"][-1] < outputs["training/losses"][0]
    assert outputs["training/changed"].mean() > 0.9
