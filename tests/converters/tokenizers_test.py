"""Tokenizers of transformers' directories: its ids, from text."""

import json
import pathlib
import shutil

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.converters.hugging_face_families import FAMILIES
from keras_pkm.converters.hugging_face_tokenizers import read_tokenizer
from keras_pkm.files.presets import load_preset_tokenizer

ROOT = pathlib.Path(__file__).parent / "tokenizers"
DIRECTORIES = sorted(path.name for path in ROOT.iterdir())


def family_of(name):
    return FAMILIES[name.split("-")[0]]


def read(path):
    return read_tokenizer(path, family_of(path.name).tokenizer)


def expected_of(name):
    text = (ROOT / name / "expected.json").read_text()
    return json.loads(text)


@pytest.mark.parametrize("name", DIRECTORIES)
def test_ids_are_those_of_transformers(name, tmp_path):
    tokenizer = read(ROOT / name)
    expected = expected_of(name)
    texts = list(expected)
    assert tokenizer(texts) == list(expected.values())
    for text in texts:
        assert tokenizer(text).tolist() == expected[text], text
    # In graphs, and as what a preset saves.
    dataset = tf.data.Dataset.from_tensor_slices(texts)
    for each, text in zip(dataset.map(tokenizer), texts):
        assert each.numpy().tolist() == expected[text], text
    (batch,) = dataset.batch(len(texts)).map(tokenizer)
    assert batch.to_list() == list(expected.values())
    tokenizer.save_to_preset(str(tmp_path))
    copy = load_preset_tokenizer(tmp_path)
    assert type(copy) is type(tokenizer)
    assert copy(texts) == list(expected.values())


def test_the_oracle_says_more_than_keras_hub():
    """What this is for: keras-hub's ids of the same vocabulary differ."""
    vocabulary = (ROOT / "bert-uncased-files" / "vocab.txt").read_text()
    plain = keras_hub.models.BertTokenizer(
        vocabulary.split("\n")[:-1], lowercase=True, strip_accents=True
    )
    expected = expected_of("bert-uncased")
    differ = [text for text in expected if list(plain(text)) != expected[text]]
    assert any("\u00a0" in text for text in differ)
    assert any("…" in text for text in differ)


@pytest.mark.parametrize("name", ["bert-uncased", "roberta"])
def test_kinds_of_input(name):
    tokenizer = read(ROOT / name)
    ids = tokenizer("the cafe").tolist()
    for batch in (
        ["the cafe"],
        ("the cafe",),
        np.array(["the cafe"]),
        np.array([b"the cafe"], object),
        tf.constant(["the cafe"]),
    ):
        assert tokenizer(batch) == [ids]
    assert tokenizer(tf.constant("the cafe")).tolist() == ids
    given = {"vocabulary": tokenizer.vocabulary}
    if name == "roberta":
        given["merges"] = tokenizer.merges
    short = type(tokenizer)(**given, sequence_length=3)
    assert short(["the cafe", "a"]).shape == (2, 3)
    assert short("the cafe the").tolist() == [*ids, ids[0]][:3]
    assert short("a").tolist()[1:] == 2 * [short.pad_token_id]


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta"])
def test_no_vocabulary(family):
    with pytest.raises(ValueError, match="No vocabulary has been set"):
        FAMILIES[family].tokenizer()("a text")


@pytest.fixture
def directory(request, tmp_path):
    path = tmp_path / request.param
    shutil.copytree(ROOT / request.param, path)
    return path


def change(path, part=None, **entries):
    content = json.loads(path.read_text())
    (content if part is None else content[part]).update(entries)
    path.write_text(json.dumps(content))


uncased = pytest.mark.parametrize("directory", ["bert-uncased"], indirect=True)
cased = pytest.mark.parametrize("directory", ["bert-cased"], indirect=True)
byte_pairs = pytest.mark.parametrize("directory", ["roberta"], indirect=True)


@cased
def test_tokenizer_json_alone(directory):
    (directory / "tokenizer_config.json").unlink()
    expected = expected_of("bert-cased")
    assert read(directory)(list(expected)) == list(expected.values())


@uncased
def test_options_that_are_not_set(directory):
    """`tokenizer_config.json` need not say what `tokenizer.json` does."""
    config = json.loads((directory / "tokenizer_config.json").read_text())
    for name in ("do_lower_case", "strip_accents", "tokenize_chinese_chars"):
        del config[name]
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    expected = expected_of("bert-uncased")
    assert read(directory)(list(expected)) == list(expected.values())


@uncased
@pytest.mark.parametrize(
    "part, entries, message",
    [
        ("normalizer", {"type": "NFKC"}, "`normalizer.type`.*NFKC.*outside"),
        ("normalizer", {"clean_text": False}, "`normalizer.clean_text`"),
        ("pre_tokenizer", {"type": "Whitespace"}, "`pre_tokenizer.type`"),
        ("model", {"continuing_subword_prefix": "@@"}, "prefix`.*@@"),
        ("model", {"max_input_chars_per_word": 50}, "per_word`.*100.*50"),
        ("model", {"type": "Unigram", "vocab": []}, "model of type Unigram"),
    ],
)
def test_what_is_not_computed_is_refused(directory, part, entries, message):
    change(directory / "tokenizer.json", part, **entries)
    with pytest.raises(ValueError, match=message):
        read(directory)


@byte_pairs
@pytest.mark.parametrize(
    "part, entries, message",
    [
        (None, {"normalizer": {"type": "NFC"}}, "`normalizer.type`.*null.*NFC"),
        ("pre_tokenizer", {"type": "Metaspace"}, "`pre_tokenizer.type`"),
        ("pre_tokenizer", {"use_regex": False}, "`pre_tokenizer.use_regex`"),
        ("model", {"dropout": 0.1}, "`model.dropout`.*0.1"),
        ("model", {"merges": []}, "must have merges"),
    ],
)
def test_other_byte_pairs_are_refused(directory, part, entries, message):
    change(directory / "tokenizer.json", part, **entries)
    with pytest.raises(ValueError, match=message):
        read(directory)


@uncased
def test_other_special_tokens_are_refused(directory):
    path = directory / "tokenizer_config.json"
    change(path, cls_token={"content": "<s>"})
    with pytest.raises(ValueError, match=r"`cls_token`.*'\[CLS\]'.*'<s>'"):
        read(directory)


@uncased
def test_ids_without_a_token(directory):
    content = json.loads((directory / "tokenizer.json").read_text())
    content["model"]["vocab"]["late"] = 500
    (directory / "tokenizer.json").write_text(json.dumps(content))
    tokenizer = read(directory)
    assert tokenizer("late").tolist() == [500]
    assert tokenizer.vocabulary_size() == 501


@uncased
def test_files_that_are_missing(directory):
    (directory / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="must contain tokenizer.json or voc"):
        read(directory)
