"""Reads documents from a TensorFlow Datasets data set."""

from collections.abc import Iterator

import tensorflow as tf

from training.runs.user_error import UserError
from training.text.tfds_examples import load_tfds


def check_tfds(name: str, data_dir: str | None) -> None:
    """Loads the data set once, without reading its documents."""
    _load(name, data_dir)


def read_tfds(name: str, data_dir: str | None) -> Iterator[str]:
    """Yields the feature "text" of each example of the split "train"."""
    dataset = _load(name, data_dir).map(lambda example: example["text"])
    for text in dataset.as_numpy_iterator():
        yield text.decode("utf-8", errors="replace").replace("\0", "\ufffd")


def _load(name: str, data_dir: str | None) -> tf.data.Dataset:
    dataset = load_tfds(
        name, "train", data_dir, f"the corpus 'tfds:{name}'", in_order=False
    )
    features = dataset.element_spec
    if features.get("text") != tf.TensorSpec((), tf.string):
        found = ", ".join(
            f"{key} ({spec.dtype.name})" for key, spec in features.items()
        )
        raise UserError(
            f"the corpus 'tfds:{name}' must have a feature 'text' of one "
            f"string, but has {found}: write the text to a file and pass that"
        )
    return dataset
