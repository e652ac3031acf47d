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
    data = tf.data.Dataset.from_tensors((texts, np.zeros(len(texts[0]))))
    ((features, _),) = data.map(preprocessor)
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


@families
def test_the_paragraph_is_cut_and_not_the_question(family):
    tokenizer = make_tokenizer(family)
    question = list(np.asarray(tokenizer(QUESTIONS[0])))
    preprocessor = make_preprocessor(family, sequence_length=len(question) + 6)
    ids = preprocessor({"question": QUESTIONS[0], "context": CONTEXTS[0]})
    ids = ids["token_ids"]
    assert list(ids[1 : len(question) + 1]) == question
    assert ids[-1] == tokenizer.end_token_id


@families
def test_labels_in_tf_data(family):
    preprocessor = make_preprocessor(family, sequence_length=40)
    labels = {"start": [3, 1], "end": [4, 1]}
    texts = {"question": QUESTIONS, "context": CONTEXTS}
    data = tf.data.Dataset.from_tensor_slices((texts, labels))
    ((features, y),) = data.batch(2).map(preprocessor)
    assert features["token_ids"].shape == (2, 40)
    np.testing.assert_array_equal(y["start"], labels["start"])


@families
@pytest.mark.parametrize("with_memory", [False, True])
def test_task_takes_texts(family, with_memory, tmp_path):
    sizes = {**SIZES, "max_sequence_length": 40}
    preprocessor = make_preprocessor(family, sequence_length=40)
    if with_memory:
        backbone = getattr(keras_pkm.models, f"PKM{family}Backbone")(
            **sizes, memory_layers=(2,), memory=MEMORY
        )
        cls = getattr(keras_pkm.models, f"PKM{family}QuestionAnswerer")
        task = cls(backbone, preprocessor)
    else:
        backbone = getattr(keras_hub.models, f"{family}Backbone")(**sizes)
        task = keras_pkm.models.QuestionAnswerer(backbone, preprocessor)
    texts = {"question": QUESTIONS, "context": CONTEXTS}
    logits = task.predict(texts, verbose=0)
    assert logits["start"].shape == logits["end"].shape == (2, 40)
    if with_memory:
        task.save_to_preset(str(tmp_path))
        copy = keras_pkm.models.QuestionAnswerer.from_preset(str(tmp_path))
        assert type(copy.preprocessor) is type(preprocessor)
        assert copy.preprocessor.sequence_length == 40
        np.testing.assert_array_equal(
            copy.predict(texts, verbose=0)["end"], logits["end"]
        )


@pytest.mark.parametrize("x", ["why", ["why"], {"question": ["why"]}])
def test_mistakes(x):
    with pytest.raises(ValueError, match="dict with 'question' and 'context'"):
        make_preprocessor("Bert")(x)
