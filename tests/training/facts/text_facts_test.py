import unicodedata

import keras_hub
import pytest
import tensorflow as tf

from training.corpora.word_pieces import SPECIAL_TOKENS
from training.corpora.word_pieces import make_tokenizer
from training.facts.open_facts import unicode_names
from training.facts.text_facts import Fact
from training.facts.text_facts import TextFacts
from training.runs.user_error import UserError

WORDS = "oslo capital of norway rome red italy".split()
VOCABULARY = [*SPECIAL_TOKENS, *WORDS]


def facts_of(*triples):
    facts = [Fact(*triple, f"line {n}") for n, triple in enumerate(triples, 1)]
    return TextFacts(facts, make_tokenizer(VOCABULARY))


def ids(text):
    return [VOCABULARY.index(word) for word in text.split()]


def test_inputs_and_labels():
    facts = facts_of(
        ("Oslo", "capital of", "Norway"), ("Rome", "", "red Italy")
    )
    features, labels, weights = facts.examples_of(tf.constant([1, 0], "int64"))
    mask = "[MASK]"
    assert features["token_ids"].numpy().tolist() == [
        ids(f"[CLS] rome {mask} {mask} [SEP] [PAD]"),
        ids(f"[CLS] oslo capital of {mask} [SEP]"),
    ]
    assert features["padding_mask"].numpy().tolist() == [
        [1, 1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1, 1],
    ]
    assert features["mask_positions"].numpy().tolist() == [[2, 3], [4, 0]]
    assert labels.numpy().tolist() == [ids("red italy"), [*ids("norway"), 0]]
    assert weights.numpy().tolist() == [[1, 1], [1, 0]]
    assert facts.sequence_length == 6 and facts.num_facts == 2
    assert facts.bits is None


@pytest.mark.parametrize("family", ["Bert", "DistilBert"])
def test_a_model_takes_all_features(family):
    tokenizer = getattr(keras_hub.models, f"{family}Tokenizer")(
        VOCABULARY, lowercase=True
    )
    backbone = getattr(keras_hub.models, f"{family}Backbone")(
        len(VOCABULARY), 1, 2, 8, 16, max_sequence_length=8
    )
    task = getattr(keras_hub.models, f"{family}MaskedLM")(backbone)
    facts = TextFacts([Fact("Oslo", "of", "Norway", "line 1")], tokenizer)
    features, *_ = facts.examples_of(tf.constant([0], "int64"))
    assert set(features) == set(task.input)


def test_other_spaces_separate_words():
    facts = facts_of(("Rome", "capital\u00a0of", "red\u3000Italy"))
    _, labels, _ = facts.examples_of(tf.constant([0], "int64"))
    assert labels.numpy().tolist() == [ids("red italy")]


@pytest.mark.parametrize(
    ("triple", "message"),
    [
        (("Bergen", "of", "Norway"), "line 2: the subject and.*'Bergen of'"),
        (("Rome", "near", "Italy"), "line 2: the subject and.*'Rome near'"),
        (("Rome", "of", "Bergen"), "line 2: the value must be .*'Bergen'"),
        (("oslo", "of", "italy"), "line 2: .*'italy' here, and 'Norway' in"),
    ],
)
def test_mistakes(triple, message):
    with pytest.raises(UserError, match=message):
        facts_of(("Oslo", "of", "Norway"), triple)


def test_names_of_unicode():
    names = unicode_names()
    assert 30_000 < len(names) < 60_000
    assert len({name.subject for name in names}) == len(names)
    by_subject = {name.subject: name.value for name in names}
    assert by_subject["0041"] == "LATIN CAPITAL LETTER A"
    assert by_subject["1F600"] == unicodedata.name("\N{GRINNING FACE}")
    # Names that follow from the number are no facts.
    assert not {"4E00", "AC00"} & set(by_subject)
