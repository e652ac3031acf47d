"""Loads TensorFlow Datasets, with errors that name the remedy."""

from collections.abc import Iterator

import tensorflow as tf

from training.runs.user_error import UserError


def load_tfds(
    name: str, split: str, data_dir: str | None, what: str, in_order: bool
) -> tf.data.Dataset:
    """Loads a split of a data set."""
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise UserError(
            f"{what} needs the package tensorflow-datasets, which cannot be "
            "imported: pip install keras-pkm[training]"
        ) from error
    options = {"interleave_cycle_length": 1} if in_order else {}
    try:
        return tfds.load(
            name,
            split=split,
            data_dir=data_dir,
            download=data_dir is None,
            read_config=tfds.ReadConfig(**options),
        )
    # tfds raises AssertionError, ValueError, network errors, and others.
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        where = f"in {data_dir!r}" if data_dir else "in tfds's own folder"
        raise UserError(
            f"{what} must be a data set that is prepared {where} or can be "
            f"downloaded, but tfds says: {reason}: prepare it with `tfds build "
            f"{name}` where there is a network, then pass its folder as "
            "--data-dir, or pass files of your own"
        ) from error


def read_tfds_examples(
    name: str, split: str, data_dir: str | None
) -> Iterator[dict]:
    """Yields the examples of a split, in the order in which they are stored."""
    dataset = load_tfds(name, split, data_dir, f"'{name}'", in_order=True)
    yield from dataset.as_numpy_iterator()
