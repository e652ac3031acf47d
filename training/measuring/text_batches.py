"""Packs a text into rows for a trained model."""

import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from training.batches.objectives import Objective
from training.commands.fields import out_of_range
from training.corpora.corpus import Corpus


@dataclasses.dataclass(frozen=True)
class PackedText:
    """A text, tokenized and packed."""

    # Int32 array of shape `(rows, sequence_length)`.
    rows: np.ndarray
    # What the model predicts in these rows.
    objective: Objective


def input_length(recipe: Any, longest: int) -> int:
    """Returns the length of inputs that a recipe asks for."""
    length = recipe.sequence_length or min(512, longest)
    if length > longest:
        raise out_of_range(
            recipe, "sequence_length", f"at most the model's {longest}"
        )
    return length


@contextlib.contextmanager
def pack_text(
    corpus: Corpus, objective: Objective, limit: int | None
) -> Iterator[PackedText]:
    """Packs a text into a temporary file, which exists within this context."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "packed"
        yield PackedText(objective.pack(corpus, path, limit), objective)
