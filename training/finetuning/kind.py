"""What fine-tuning needs to know of a kind of task."""

import dataclasses
from typing import Protocol

import keras
import keras_hub

from training.batches.labelled import Labelled


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """The figures of an evaluation on dev sets, and what the model said.

    Attributes:
        figures: dict of floats from 0 to 1, or losses.
        files: dict from names of files to their text.
    """

    figures: dict[str, float]
    files: dict[str, str] = dataclasses.field(default_factory=dict)


class FinetuningKind(Protocol):
    """A kind of task: its data, its head, its loss and its figures.

    Attributes:
        train: `Labelled`, to train on.
        decides: The figure that says which epoch is best.
        baseline: What the most frequent class gives, for each figure.
        preprocessor: The preprocessor that users of the model need.
    """

    train: Labelled
    decides: str
    baseline: dict[str, float]
    preprocessor: keras_hub.models.Preprocessor

    def build(self, backbone: keras_hub.models.Backbone) -> keras.Model:
        """Returns a task with a fresh head."""

    def compile(
        self, task: keras.Model, optimizer: keras.optimizers.Optimizer
    ) -> None:
        """Gives a task its loss and metrics."""

    def evaluate(self, task: keras.Model) -> Evaluated:
        """Returns the figures of all dev sets, from 0 to 1."""
