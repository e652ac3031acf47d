"""Slots that are specific to a text, by their TF-IDF."""

import os
import pathlib
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_pkm.files.array_files import read_arrays
from keras_pkm.files.array_files import write_arrays
from keras_pkm.ops.arguments import integer
from keras_pkm.ops.arguments import positive_int
from keras_pkm.probing.memory_probe import MemoryProbe
from keras_pkm.probing.model_batches import ModelBatches

_BATCHES = "num_batches"
_MEMORY = "memory_"


class SlotImportance:
    """Scores slots by how specific they are to a text.

    The background is a number of batches of the text that a model was trained
    on. A slot is specific to a new text if the new text reads it often, and few
    batches of the background read it: changing its values changes little else.
    If the new text reads slot i c(i) times, and df(i) of the B batches of the
    background read it, its importance is

        c(i) / Σ c · ln((B + 1) / (df(i) + 1))

    Args:
        num_batches: int. B, the number of batches of the background.
        document_frequencies: dict. It maps the number of each memory, as
            `keras_pkm.models.MemoryProbe` counts them, to df, an int array of
            shape `(num_slots,)`.

    Example:

    >>> importance = keras_pkm.teaching.SlotImportance(
    ...     num_batches=3, document_frequencies={1: [3, 1, 0, 0]}
    ... )
    >>> reads = {1: [6, 2, 2, 0]}
    >>> importance.score(reads)[1].round(2)
    array([0.  , 0.14, 0.28, 0.  ])
    >>> importance.best(reads, count=3)[1]
    array([2, 1])

    References:

    - [Lin et al., 2025](https://arxiv.org/abs/2510.15103)
    """

    def __init__(
        self,
        num_batches: int,
        document_frequencies: Mapping[int, Iterable[int]],
    ):
        self.num_batches = positive_int("num_batches", num_batches)
        self.document_frequencies = {
            number: np.array(frequencies, "int32")
            for number, frequencies in document_frequencies.items()
        }
        for number, frequencies in self.document_frequencies.items():
            if frequencies.min() < 0 or frequencies.max() > self.num_batches:
                raise ValueError(
                    "`document_frequencies` must be from 0 to `num_batches`. "
                    f"Received: num_batches={num_batches}, and for memory "
                    f"{number} from {frequencies.min()} to "
                    f"{frequencies.max()}."
                )

    @classmethod
    def of_background(
        cls,
        model: keras.Model,
        batches: Any,
        batch_size: int | None = None,
        steps: int | None = None,
    ) -> "SlotImportance":
        """Counts which slots the batches of a background read.

        Args:
            model: any Keras model with memories.
            batches: the background, as the data for
                `keras_pkm.models.MemoryProbe.measure`: batches as for `fit`, or
                arrays or texts that are cut into batches. Padding is not
                counted.
            batch_size: optional int. The number of examples in a batch, if
                `batches` is arrays. Defaults to `None`: 32, or with `steps` as
                many as make that number of batches, as in Keras.
            steps: optional int. The number of batches to count. Defaults to
                `None`: all batches.

        Raises:
            ValueError: as for `MemoryProbe.measure`.
        """
        count = 0
        frequencies: dict[int, np.ndarray] = {}
        probe = MemoryProbe(model)
        for x, _, _ in ModelBatches(
            batches, model, "batches", batch_size, steps
        ):
            count += 1
            for number, of_memory in probe.count(x).items():
                was_read = of_memory["reads"] > 0
                frequencies[number] = frequencies.get(number, 0) + was_read
        return cls(count, frequencies)

    def score(self, reads: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Returns the importance of each slot for some text.

        Args:
            reads: dict. It maps the number of each memory to c, an array of
                shape `(num_slots,)`: how often the text reads each slot.

        Returns:
            A dict of float64 arrays of the same shape.
        """
        return {
            number: self.score_slots(
                np.asarray(of_memory), self.document_frequencies[number]
            )
            for number, of_memory in reads.items()
        }

    def best(
        self, reads: Mapping[int, np.ndarray], count: int
    ) -> dict[int, np.ndarray]:
        """Returns the most important slots of each memory, best first.

        Args:
            reads: as for `score`.
            count: int. The maximum number of slots of each memory; there are
                fewer if fewer have an importance above zero.
        """
        count = integer("count", count, least=0)
        return {
            number: best_slots(scores, count)
            for number, scores in self.score(reads).items()
        }

    def best_of_table(
        self, reads: Mapping[int, np.ndarray], count: int
    ) -> np.ndarray:
        """Returns the most important slots of one table, best first.

        The reads of all its memories count, and so do the batches of the
        background in which any of them may have read a slot.

        Args:
            reads: as for `score`, of the memories that read the table.
            count: int. The maximum number of slots.
        """
        found = [self.document_frequencies[number] for number in reads]
        frequencies = np.minimum(np.sum(found, 0), self.num_batches)
        total = np.sum([np.asarray(each) for each in reads.values()], 0)
        scores = self.score_slots(total, frequencies)
        return best_slots(scores, integer("count", count, least=0))

    def score_slots(
        self, reads: np.ndarray, document_frequency: np.ndarray
    ) -> np.ndarray:
        """Returns the importance of slots; a subclass may score otherwise.

        Args:
            reads: array of shape `(num_slots,)`: how often the new material
                reads each slot.
            document_frequency: array of shape `(num_slots,)`: the number of
                background batches that read it.
        """
        return slot_importance(reads, document_frequency, self.num_batches)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the background's counts to a file.

        Args:
            path: the file, `.npz`. An existing file is replaced.
        """
        arrays = {
            f"{_MEMORY}{number}": frequencies
            for number, frequencies in self.document_frequencies.items()
        }
        arrays[_BATCHES] = np.array(self.num_batches)
        write_arrays(pathlib.Path(path), arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SlotImportance":
        """Reads counts that `save` wrote.

        Args:
            path: the file.

        Raises:
            ValueError: the file cannot be read, or has other content.
        """
        arrays = read_arrays(pathlib.Path(path))
        if _BATCHES not in arrays:
            raise ValueError(
                f"'{path}' must be a file of `SlotImportance.save`. Received: "
                f"arrays {', '.join(arrays) or 'none'}."
            )
        return cls(
            int(arrays.pop(_BATCHES)),
            {
                int(name.removeprefix(_MEMORY)): frequencies
                for name, frequencies in arrays.items()
            },
        )


def slot_importance(
    reads: np.ndarray, document_frequency: np.ndarray, num_batches: int
) -> np.ndarray:
    """Returns c / Σ c · ln((B + 1) / (df + 1)), or zeros if nothing is read.

    Args:
        reads: c, of shape `(num_slots,)`.
        document_frequency: df, likewise.
        num_batches: B.
    """
    share = reads / max(reads.sum(), 1)
    return share * np.log((num_batches + 1) / (document_frequency + 1))


def best_slots(importance: np.ndarray, count: int) -> np.ndarray:
    """Returns the slots of the highest importance above zero, best first.

    Args:
        importance: Array of shape `(num_slots,)`.
        count: The maximum number of slots.
    """
    order = np.argsort(-importance, kind="stable")[:count]
    return order[importance[order] > 0]
