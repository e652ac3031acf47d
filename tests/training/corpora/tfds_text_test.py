import sys

import pytest
import tensorflow as tf

from training.corpora.corpus import open_corpus
from training.runs.user_error import UserError

tfds = pytest.importorskip("tensorflow_datasets")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("tfds"))

    def store(name, features, examples):
        tfds.dataset_builders.store_as_tfds_dataset(
            name=name,
            version="1.0.0",
            features=tfds.features.FeaturesDict(features),
            split_datasets={
                "train": _dataset(examples),
                "test": _dataset(examples[-1:]),
            },
            data_dir=folder,
            disable_shuffling=True,
        )

    store(
        "texts",
        {"text": tfds.features.Text(), "title": tfds.features.Text()},
        [
            {"text": "One.\nTwo.", "title": "a"},
            {"text": "Drei Äpfel", "title": "b"},
            {"text": "\0", "title": "c"},
        ],
    )
    store("numbers", {"text": tf.int32}, [{"text": 1}])
    store("titles", {"title": tfds.features.Text()}, [{"title": "a"}])
    return folder


def _dataset(examples):
    columns = {key: [row[key] for row in examples] for key in examples[0]}
    return tf.data.Dataset.from_tensor_slices(columns)


def test_documents_are_the_texts(data_dir):
    corpus = open_corpus("tfds:texts", data_dir)
    documents = ["One.\nTwo.", "Drei Äpfel", "\ufffd"]
    assert list(corpus) == documents
    assert list(corpus) == documents
    assert corpus.name == "tfds:texts"
    assert list(open_corpus("tfds:texts@test", data_dir)) == documents[-1:]
    # Text to train on must not be held out under another name.
    part = open_corpus("tfds:texts@train[:1]", data_dir)
    assert part.sources == corpus.sources


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("titles", r"feature 'text' of one string, but has title \(string\)"),
        ("numbers", r"feature 'text' of one string, but has text \(int32\)"),
        ("nothing_of_this_name", "must be a data set that is prepared in"),
        ("imdb_reviews", "must be a data set that is prepared in"),
        ("", "must be a data set that is prepared in"),
    ],
)
def test_a_data_set_without_text_is_refused(data_dir, name, rule):
    with pytest.raises(UserError, match=rule) as error:
        open_corpus(f"tfds:{name}", data_dir)
    assert "\n" not in str(error.value)


def test_missing_package(data_dir, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(UserError, match=r"pip install keras-pkm\[training\]"):
        open_corpus("tfds:texts", data_dir)
