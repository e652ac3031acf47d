"""Labelled examples as arrays, and batches of them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_pkm.text.tokenize import readable
from training.batches.row_order import rows_of_like_length
from training.batches.row_order import shuffled_rows
from training.batches.step_batches import step_batches

_TEXTS_PER_BATCH = 1024
# Lengths of training batches are multiples of this, so that few shapes occur.
_LENGTH_MULTIPLE = 8


@dataclasses.dataclass(frozen=True)
class Labelled:
    """Examples as arrays, with one row for each example."""

    # Dict of int32 arrays of shape `(rows, sequence_length)`.
    features: dict[str, np.ndarray]
    # Int32 array of shape `(rows,)`, or a dict of such arrays.
    labels: np.ndarray | dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.features.values())))


def encode_texts(
    texts: Sequence[Sequence[str]],
    labels: np.ndarray,
    preprocessor: keras_hub.models.Preprocessor,
    label: str | None = None,
) -> Labelled:
    """Turns one or two texts of each example into a model's inputs."""
    tokenizer = preprocessor.tokenizer
    texts = tuple(
        readable(tokenizer, tf.constant(each, tf.string)) for each in texts
    )
    texts = texts if len(texts) > 1 else texts[0]
    # Without labels it would take the second text for labels.
    batches = (
        tf.data.Dataset.from_tensor_slices((texts, labels))
        .batch(_TEXTS_PER_BATCH)
        .map(preprocessor)
    )
    parts = [
        {name: np.asarray(value, "int32") for name, value in features.items()}
        for features, _ in tqdm(
            batches.as_numpy_iterator(),
            label,
            total=-(-len(labels) // _TEXTS_PER_BATCH),
            disable=None if label else True,
        )
    ]
    features = {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }
    return Labelled(features, labels)


def training_batches(
    data: Labelled,
    *,
    batch_size: int,
    seed: int,
    first_step: int = 0,
    num_steps: int | None = None,
    group_by_length: bool = False,
) -> tf.data.Dataset:
    """Returns shuffled batches of features and labels.

    The order is that of `training.batches.row_order`: a run that resumes at
    `first_step` gets the same batches as an uninterrupted one. Padding that all
    rows of a batch have in common is cut off.
    """

    def batch(step: tf.Tensor) -> tuple[Any, ...]:
        if group_by_length:
            rows = rows_of_like_length(
                lengths, batch_size, seed, step, last_step
            )
        else:
            rows, _ = shuffled_rows(len(data), batch_size, seed, step)
        return _read(data, rows, batch_size, trim=True)

    if group_by_length:
        lengths = tf.constant(data.features["padding_mask"].sum(axis=1))
    last_step = np.iinfo(np.int64).max // batch_size
    if num_steps is not None:
        last_step = first_step + num_steps
    steps = tf.data.Dataset.range(first_step, last_step)
    return step_batches(steps, batch)


def dev_batches(data: Labelled, *, batch_size: int) -> tf.data.Dataset:
    """Returns each example once, in order, with a weight.

    The last batch is filled up with copies of the last example, whose weights
    are 0. So nothing is dropped or counted twice, and all batches have the same
    size, which the replicas of a `tf.distribute` strategy can share.
    """
    count = len(data)

    def batch(step: tf.Tensor) -> tuple[Any, ...]:
        rows = step * batch_size + tf.range(batch_size, dtype=tf.int64)
        weights = tf.cast(rows < count, "float32")
        features, labels = _read(data, tf.minimum(rows, count - 1), batch_size)
        weights = keras.tree.map_structure(lambda _: weights, labels)
        return features, labels, weights

    steps = tf.data.Dataset.range(-(-count // batch_size))
    return step_batches(steps, batch)


def _read(
    data: Labelled, rows: tf.Tensor, batch_size: int, trim: bool = False
) -> tuple[Any, Any]:
    """Reads rows when the graph runs; the graph does not contain them."""
    arrays = (data.features, data.labels)
    flat = keras.tree.flatten(arrays)

    def read(rows: np.ndarray) -> list[np.ndarray]:
        found = [array[rows] for array in flat]
        if not trim:
            return found
        mask = keras.tree.pack_sequence_as(arrays, found)[0]["padding_mask"]
        used = np.flatnonzero(mask.any(axis=0))[-1] + 1
        length = -(-used // _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE
        return [
            array[:, :length] if array.ndim > 1 else array for array in found
        ]

    tensors = tf.numpy_function(
        read,
        [rows],
        [tf.as_dtype(array.dtype) for array in flat],
        stateful=False,
    )
    for tensor, array in zip(tensors, flat):
        shape = [None] if trim else array.shape[1:]
        tensor.set_shape((batch_size, *(shape if array.ndim > 1 else ())))
    return keras.tree.pack_sequence_as(arrays, tensors)
