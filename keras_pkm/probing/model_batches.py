"""Batches of whatever `fit` and `evaluate` take, for one model."""

import sys
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import TypeAlias

import keras
import keras_hub
import numpy as np
from keras.src.trainers.data_adapters import get_data_adapter

from keras_pkm.ops.arguments import positive_int_or_none
from keras_pkm.ops.backend import backend

#: Inputs, labels (or `None`) and sample weights (or `None`) of a batch.
Batch: TypeAlias = tuple[Any, Any, Any]
#: Data that does not say how long it is must end within this many batches.
MOST_BATCHES = 10_000
# The same as `tf.data` makes of Python's numbers.
_NARROW = {"float64": "float32", "int64": "int32"}


class ModelBatches:
    """Batches `(x, y, sample_weight)` of data that a user passes for a model.

    The data is what `fit` takes:

    - arrays, which are cut into batches: the inputs, or a tuple `(x,)`,
      `(x, y)` or `(x, y, sample_weight)`. A tuple never means several inputs:
      pass these as a dict, as a list, or as a tuple in a tuple;
    - batches: a `tf.data.Dataset`, a `keras.utils.PyDataset`, a generator, a
      list of batches, or any other iterable, such as a torch `DataLoader` or a
      grain dataset. Each batch is an `x`, or a tuple as above.

    A list of arrays is the inputs of a model that has as many, and otherwise a
    list of batches, if there is one or more than three: a list of two or three
    may as well be `(x, y)` or `(x, y, sample_weight)`, and is refused.

    The preprocessor of a keras-hub task is applied to `x`, as in the task's
    `fit`, unless `x` has the features that the task's backbone takes.

    Args:
        data: The data.
        model: The model.
        name: The argument's name, for errors.
        batch_size: Number of examples in a batch, for arrays. Defaults to
            `None`: as in Keras, 32, or as many as make `steps` batches.
        steps: Number of batches in a pass. Defaults to `None`: all of them.

    Raises:
        ValueError: `fit` would not take the data.
    """

    def __init__(
        self,
        data: Any,
        model: keras.Model,
        name: str,
        batch_size: int | None = None,
        steps: int | None = None,
    ):
        self._model = model
        self._name = name
        self._batch_size = positive_int_or_none("batch_size", batch_size)
        self._steps = positive_int_or_none("steps", steps)
        self._strategy = backend.strategy_of(model)
        self._adapter: Any = None
        self._kept: list[Batch] | None = None
        # The number of batches: `None` if unknown, infinity if endless.
        self._length: float | None = None
        #: Whether the data can be iterated over only once, as a generator.
        self.is_read_once = isinstance(data, Iterator)
        self._batches = self._open(data)

    def _open(self, data: Any) -> Iterable[Any]:
        """Returns the batches as the data has them, and notes their number."""
        if not self._has_batches(data):
            return self._cut(data)
        if self._batch_size is not None:
            raise ValueError(
                f"`batch_size` must be `None` if `{self._name}` consists of "
                f"batches. Received: batch_size={self._batch_size}. Make "
                "batches of that size, or pass arrays."
            )
        if isinstance(data, keras.utils.PyDataset):
            return self._adapted(data)
        if _is_dataset(data):
            tf = sys.modules["tensorflow"]
            size = data.cardinality
            length = int(size() if callable(size) else size)
            if length == tf.data.INFINITE_CARDINALITY:
                self._length = float("inf")
            elif length != tf.data.UNKNOWN_CARDINALITY:
                self._length = length
        elif isinstance(data, list):
            self._length = len(data)
        return data

    def _has_batches(self, data: Any) -> bool:
        """Whether the data consists of batches, and not of arrays."""
        if isinstance(data, keras.utils.PyDataset) or _is_dataset(data):
            return True
        if not isinstance(data, list):
            return isinstance(data, Iterable) and not (
                isinstance(data, tuple | dict | str | bytes) or _is_array(data)
            )
        if all(isinstance(each, tuple | dict | list) for each in data):
            return True
        if _is_list_of_texts(data):
            return False
        if not all(map(_is_array, data)):
            kinds = ", ".join(sorted({type(each).__name__ for each in data}))
            raise self._error(f"a list of {kinds}")
        inputs = len(_inputs_of(self._model))
        if inputs > 1 and len(data) == inputs:
            return False
        if len(data) == 1 or (inputs == 1 and len(data) > 3):
            return True
        raise self._error(
            f"a list of {len(data)} arrays, for a model with "
            f"{inputs or 'an unknown number of'} inputs",
            "Pass batches as a list of tuples, `[(x,), ...]`, inputs and "
            "labels as a tuple, and several inputs as a tuple in a tuple, "
            "`((x1, x2),)`",
        )

    def _cut(self, data: Any) -> Iterable[Any]:
        """Cuts arrays into batches."""
        # A list has several inputs here, and not labels.
        arrays = self._unpack((data,) if isinstance(data, list) else data)
        leaves = [x for x in keras.tree.flatten(arrays) if x is not None]
        if not leaves:
            raise self._error("no inputs")
        for leaf in leaves:
            if not len(leaf.shape):
                raise self._not_batched(leaf)
        if not leaves[0].shape[0]:
            self._length = 0
            return []
        if _has_texts(arrays) and sys.modules.get("tensorflow") is None:
            return self._cut_texts(arrays, len(leaves[0]))
        return self._adapted(
            *arrays, batch_size=self._batch_size, steps_per_epoch=self._steps
        )

    def _cut_texts(self, arrays: Batch, size: int) -> list[Any]:
        """Cuts arrays as Keras' adapter does, which takes no texts."""
        batch_size = self._batch_size
        if batch_size is None:
            batch_size = -(-size // self._steps) if self._steps else 32
        starts = range(0, size, batch_size)
        batches = [_part(arrays, n, n + batch_size) for n in starts]
        self._length = len(batches)
        return batches

    def _adapted(self, *arguments: Any, **options: Any) -> Iterable[Any]:
        self._adapter = get_data_adapter(*arguments, **options)
        length = self._adapter.num_batches
        self._length = float("inf") if length is None else length
        return _OverAndOver(self._adapter)

    def keep(self) -> "ModelBatches":
        """Reads a generator's batches, so that they can be iterated again."""
        if self.is_read_once:
            self._kept = list(self)
            self.is_read_once = False
        return self

    def __iter__(self) -> Iterator[Batch]:
        """Yields the batches: `steps` of them, or all.

        Raises:
            ValueError: there are none, or fewer than `steps`; or they do not
                end, and `steps` is missing.
        """
        if self._length == float("inf") and self._steps is None:
            raise ValueError(
                f"`{self._name}` must have an end, or `steps` must say how "
                "many of its batches to take. Received: endless data, and "
                "steps=None. Pass `steps`, or use the dataset's `take`."
            )
        is_known = self._length is not None or self._steps is not None
        count = 0
        for batch in self.one_pass():
            if count == MOST_BATCHES and not is_known:
                raise ValueError(
                    f"`{self._name}` must end within {MOST_BATCHES:,} batches, "
                    "or `steps` must say how many of them to take. Received: "
                    "data that has more and does not say how many, and "
                    "steps=None."
                )
            yield batch
            count += 1
            if count == self._steps:
                return
        if not count:
            raise self.is_empty()
        if self._steps is not None:
            raise ValueError(
                "`steps` must be at most the number of batches in "
                f"`{self._name}`. Received: steps={self._steps}, and data that "
                f"ended after {count}."
            )

    def is_empty(self) -> ValueError:
        """Returns the error for data without batches."""
        used = ", or one whose batches were read before" * self.is_read_once
        return ValueError(
            f"`{self._name}` must have at least one batch. "
            f"Received: an empty one{used}."
        )

    def one_pass(self) -> Iterator[Batch]:
        """Yields the batches of one pass, however many there are."""
        if self._kept is not None:
            yield from self._kept
        elif self._strategy.num_replicas_in_sync > 1:
            yield from self._distributed()
        elif keras.backend.backend() == "tensorflow" and _is_dataset(
            self._batches
        ):
            yield from map(_unpack, self._mapped(self._batches))
        else:
            for batch in self._batches:
                yield self._prepare(*self._unpack(batch))

    def _distributed(self) -> Iterator[Batch]:
        """The same under `tf.distribute`: batches divided among replicas."""
        tf = sys.modules["tensorflow"]
        data = self._batches
        datasets: Iterable[Any] = [data]
        if isinstance(data, tf.data.Dataset):
            datasets = [self._mapped(data)]
        elif not _is_dataset(data):
            # One of each batch: Keras' adapter wants labels, and a last batch
            # of the size of the others.
            datasets = (
                tf.data.Dataset.from_tensors(
                    _without_none(*self._prepare(*self._unpack(batch)))
                )
                for batch in data
            )
        for dataset in datasets:
            if isinstance(dataset, tf.data.Dataset):
                dataset = self._strategy.experimental_distribute_dataset(
                    dataset
                )
            yield from map(_unpack, dataset)

    def _mapped(self, dataset: Any) -> Any:
        """Preprocesses the batches of a dataset, if they have to be."""
        tf = sys.modules["tensorflow"]
        spec = dataset.element_spec
        x, y, _ = self._unpack(spec)
        if not self._needs_preprocessor(x):
            self._check(x, y)
            return dataset

        def prepare(*batch: Any) -> Any:
            # A tuple comes as several arguments.
            batch = batch if isinstance(spec, tuple) else batch[0]
            return keras.utils.pack_x_y_sample_weight(
                *self._prepare(*self._unpack(batch))
            )

        return dataset.map(prepare, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def _unpack(self, batch: Any) -> Batch:
        """Returns inputs, labels and weights, in which all is an array."""
        if isinstance(batch, list) and not _is_list_of_texts(batch):
            batch = tuple(batch)  # as Keras does
        if not isinstance(batch, tuple):
            batch = (batch,)
        if not 1 <= len(batch) <= 3:
            raise self._error(f"a tuple of length {len(batch)}")
        arrays = keras.utils.unpack_x_y_sample_weight(
            tuple(map(_as_arrays, batch))
        )
        for leaf in keras.tree.flatten(arrays):
            if leaf is not None and not _is_array(leaf):
                raise self._error(f"a `{type(leaf).__name__}` in it")
            if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "O":
                raise self._error("an array of other objects than str")
        return arrays

    def _prepare(self, x: Any, y: Any, sample_weight: Any) -> Batch:
        if self._needs_preprocessor(x):
            self._check_examples(x, y)
            x, y, sample_weight = _unpack(
                self._model.preprocess_samples(_as_texts(x), y, sample_weight)
            )
        self._check(x, y)
        return x, y, sample_weight

    def _needs_preprocessor(self, x: Any) -> bool:
        """Whether `fit` would make the features of a task from `x`."""
        if not isinstance(self._model, keras_hub.models.Task):
            return False
        if self._model.preprocessor is None:
            return False
        return not (isinstance(x, dict) and _features(self._model) & x.keys())

    def _check_examples(self, x: Any, y: Any) -> None:
        if _has_texts(y):
            raise self._error(
                "texts in the place of labels",
                "If these are the second texts of pairs, pass the pairs as a "
                "tuple in a tuple: `((first, second),)` or "
                "`((first, second), labels)`",
            )
        for leaf in keras.tree.flatten(x):
            if _rank(leaf) == 0:
                raise self._not_batched(leaf)

    def _check(self, x: Any, y: Any) -> None:
        """Checks features: Keras' errors come late, and name no argument."""
        self._check_examples(x, y)
        inputs = _inputs_of(self._model)
        if not inputs:
            return
        kind = type(self._model).__name__
        takes_text = any(each.dtype == "string" for each in inputs.values())
        if _has_texts(x) and not takes_text:
            raise self._error(
                f"texts, for a `{kind}` without a preprocessor",
                "Pass a task with a preprocessor, or what the preprocessor "
                "makes of the texts",
            )
        if isinstance(x, dict):
            if missing := _features(self._model) - x.keys():
                raise self._error(
                    f"a dict without {', '.join(sorted(missing))}"
                )
        else:
            leaves = keras.tree.flatten(x)
            if len(leaves) != len(inputs):
                raise self._error(
                    f"{len(leaves)} inputs, for a `{kind}` with "
                    f"{len(inputs)}: {', '.join(inputs)}"
                )
            x = dict(zip(inputs, leaves))
        for name, leaf in x.items():
            if name not in inputs:
                continue
            shape = inputs[name].shape
            # Keras adds a last axis of length 1 itself.
            if _rank(leaf) == len(shape) - 1 and shape[-1] != 1:
                raise self._not_batched(leaf)

    def _not_batched(self, leaf: Any) -> ValueError:
        return self._error(
            f"an input of shape {tuple(leaf.shape)}, a single example",
            "Use the `batch` of a dataset, or wrap an example in a list",
        )

    def _error(self, received: str, remedy: str = "") -> ValueError:
        return ValueError(
            f"`{self._name}` must be arrays, a tuple `(x, y)` or "
            "`(x, y, sample_weight)` of arrays, or batches of these: a "
            "`tf.data.Dataset`, a `PyDataset`, a generator, or a list of "
            f"tuples. Received: {received}.{f' {remedy}.' if remedy else ''}"
        )


class _OverAndOver:
    """The batches of one of Keras' data adapters, pass after pass."""

    def __init__(self, adapter: Any):
        self._adapter = adapter

    def __iter__(self) -> Iterator[Any]:
        self._adapter.on_epoch_begin()
        try:
            yield from self._adapter.get_numpy_iterator()
        finally:
            self._adapter.on_epoch_end()


def _unpack(batch: Any) -> Batch:
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
    return x, y, sample_weight


def _without_none(x: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
    """A batch that a dataset can contain."""
    if y is None:
        return (x,)
    return (x, y) if sample_weight is None else (x, y, sample_weight)


def _inputs_of(model: keras.Model) -> dict[str, Any]:
    """The inputs of a functional model by name; none for a subclassed one."""
    inputs = getattr(model, "inputs", None) or []
    return {each.name: each for each in inputs}


def _features(model: keras.Model) -> set[str]:
    """The inputs of the backbone of keras-hub that a model has or is."""
    backbone = getattr(model, "backbone", model)
    if not isinstance(backbone, keras_hub.models.Backbone):
        return set()
    return set(backbone.input)


def _as_arrays(nested: Any) -> Any:
    """Makes arrays of lists of str or numbers, as keras-hub's `fit` does."""
    if isinstance(nested, tuple):
        return tuple(map(_as_arrays, nested))
    if isinstance(nested, dict):
        return {name: _as_arrays(each) for name, each in nested.items()}
    if isinstance(nested, list) and any(map(_is_array, nested)):
        return [_as_arrays(each) for each in nested]
    tf = sys.modules.get("tensorflow")
    is_python = isinstance(nested, list | str | bytes | int | float)
    if tf is not None and tf.is_tensor(nested):
        if keras.backend.backend() == "tensorflow" or nested.dtype == tf.string:
            return nested
        return np.asarray(nested)
    if not is_python and not hasattr(nested, "__array__"):
        return nested
    # A tensor of torch may be on a GPU.
    is_tensor = keras.ops.is_tensor(nested)
    array = (
        keras.ops.convert_to_numpy(nested) if is_tensor else np.asarray(nested)
    )
    if _is_text(array):
        # Neither Keras' adapters nor tokenizers take arrays of str.
        return tf.constant(array.tolist()) if tf else array
    if is_python:
        return array.astype(_NARROW.get(array.dtype.name, array.dtype))
    return array


def _part(nested: Any, start: int, end: int) -> Any:
    """Some of the examples of nested arrays, any of which may be `None`."""
    return keras.tree.map_structure(
        lambda leaf: None if leaf is None else leaf[start:end], nested
    )


def _as_texts(nested: Any) -> Any:
    """Makes lists of arrays of str, as KerasHub's preprocessors take them."""
    return keras.tree.map_structure(
        lambda leaf: (
            leaf.tolist()
            if isinstance(leaf, np.ndarray) and _is_text(leaf)
            else leaf
        ),
        nested,
    )


def _is_dataset(value: Any) -> bool:
    """Whether something is a dataset of TensorFlow, whatever the backend."""
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(
        value, tf.data.Dataset | tf.distribute.DistributedDataset
    )


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and not isinstance(value, np.generic)


def _is_list_of_texts(value: Any) -> bool:
    return bool(value) and all(isinstance(each, str | bytes) for each in value)


def _rank(leaf: Any) -> int | None:
    # A `tf.TensorShape` may be unknown.
    shape = leaf.shape
    return shape.rank if hasattr(shape, "rank") else len(shape)


def _has_texts(nested: Any) -> bool:
    return any(map(_is_text, keras.tree.flatten(nested)))


def _is_text(leaf: Any) -> bool:
    if not isinstance(leaf, np.ndarray):
        # A dtype of TensorFlow, whatever the backend is.
        return getattr(getattr(leaf, "dtype", None), "name", "") == "string"
    if leaf.dtype.kind == "O":
        return bool(leaf.size) and all(
            isinstance(each, str | bytes) for each in leaf.flat
        )
    return leaf.dtype.kind in "US"
