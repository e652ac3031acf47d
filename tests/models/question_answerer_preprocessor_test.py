import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from tests.models.tiny import MEMORY
from tests.models.tiny import SIZES

QUESTIONS = ["why the fox", "the"]
CONTEXTS = ["the fox jumped over the dog the fox jumped again", "dog"]
families = pytest.mark.parametrize("family", ["Bert", "DistilBert", "Roberta"])


def make_tokenizer(family):
    words = sorted(
        {word for text in QUESTIONS + CONTEXTS for word in text.split()}
    )
    if family == "Roberta":
        letters = sorted({letter for word in words for letter in word})
        tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "Ġ", *letters]
        return keras_hub.models.RobertaTokenizer(
            {t: number for number, t in enumerate([*tokens, "th"])}, ["t h"]
        )
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    cls = getattr(keras_hub.models, f"{family}Tokenizer")
    return cls([*special, *words])


def make_preprocessor(family, **kwargs):
    cls = getattr(keras_pkm.models, f"{family}QuestionAnswererPreprocessor")
    return cls(make_tokenizer(family), **kwargs)


def theirs(family, length, texts):
    """keras-hub's layout of two texts, which is made for classification."""
    cls = getattr(keras_hub.models, f"{family}TextClassifierPreprocessor")
    preprocessor = cls(
        make_tokenizer(family), sequence_length=length, truncate="waterfall"
    )
    features, _ = preprocessor(texts, np.zeros(len(texts[0])))
    return features


@families
@pytest.mark.parametrize("length", [18, 60])
def test_layout(family, length):
    preprocessor = make_preprocessor(family, sequence_length=length)
    features = preprocessor({"question": QUESTIONS, "context": CONTEXTS})
    expected = theirs(family, length, (QUESTIONS, CONTEXTS))
    assert set(features) == set(expected)
    for name, value in features.items():
        np.testing.assert_array_equal(value, expected[name])
    single = preprocessor({"question": QUESTIONS[0], "context": CONTEXTS[0]})
    np.testing.assert_array_equal(single["token_ids"], features["token_ids"][0])


def test_another_length():
    preprocessor = make_preprocessor("Bert", sequence_length=18)
    for length in (18, 60):
        preprocessor.sequence_length = length
        features = preprocessor({"question": QUESTIONS, "context": CONTEXTS})
        expected = theirs("Bert", length, (QUESTIONS, CONTEXTS))
        for name, value in features.items():
            np.testing.assert_array_equal(value, expected[name])


@families
def test_the_paragraph_is_cut_and_not_the_question(family):
    tokenizer = make_tokenizer(family)
    question = list(np.asarray(tokenizer(QUESTIONS[0])))
    preprocessor = make_preprocessor(family, sequence_length=len(question) + 6)
    ids = preprocessor({"question": QUESTIONS[0], "context": CONTEXTS[0]})
    ids = ids["token_ids"]
    assert list(ids[1 : len(question) + 1]) == question
    assert ids[-1] == tokenizer.end_token_id


@pytest.mark.slow
def test_labels_in_tf_data():
    preprocessor = make_preprocessor("Bert", sequence_length=40)
    labels = {"start": [3, 1], "end": [4, 1]}
    texts = {"question": QUESTIONS, "context": CONTEXTS}
    data = tf.data.Dataset.from_tensor_slices((texts, labels))
    ((features, y),) = data.batch(2).map(preprocessor)
    assert features["token_ids"].shape == (2, 40)
    np.testing.assert_array_equal(y["start"], labels["start"])


def make_task(family, with_memory):
    sizes = {**SIZES, "num_layers": 2, "max_sequence_length": 40}
    preprocessor = make_preprocessor(family, sequence_length=40)
    backbone = getattr(keras_hub.models, f"{family}Backbone")(**sizes)
    if with_memory:
        cls = getattr(keras_pkm.models, f"{family}QuestionAnswerer")
        return keras_pkm.models.add_memory(
            cls(backbone, preprocessor), (2,), MEMORY, "resm"
        )
    return keras_pkm.models.QuestionAnswerer(backbone, preprocessor)


@pytest.mark.parametrize(
    "family, with_memory",
    [
        ("DistilBert", True),
        pytest.param("Bert", False, marks=pytest.mark.slow),
        pytest.param("Roberta", True, marks=pytest.mark.slow),
    ],
)
def test_task_takes_texts(family, with_memory):
    task = make_task(family, with_memory)
    texts = {"question": QUESTIONS, "context": CONTEXTS}
    logits = task.predict(texts, verbose=0)
    expected = task(task.preprocessor(texts))
    for name in ("start", "end"):
        assert logits[name].shape == (2, 40)
        np.testing.assert_allclose(logits[name], expected[name], atol=1e-5)


@families
def test_preset_holds_the_preprocessor(family, tmp_path):
    task = make_task(family, with_memory=True)
    task.save_to_preset(str(tmp_path))
    copy = keras_pkm.models.QuestionAnswerer.from_preset(str(tmp_path))
    assert type(copy.preprocessor) is type(task.preprocessor)
    assert copy.preprocessor.sequence_length == 40
    texts = {"question": QUESTIONS, "context": CONTEXTS}
    for name, value in task(task.preprocessor(texts)).items():
        np.testing.assert_array_equal(
            copy(copy.preprocessor(texts))[name], value
        )


@pytest.mark.parametrize("x", ["why", ["why"], {"question": ["why"]}])
def test_mistakes(x):
    with pytest.raises(ValueError, match="dict with 'question' and 'context'"):
        make_preprocessor("Bert")(x)
