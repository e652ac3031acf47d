"""The interface between fine-tuning and a kind of task."""

import dataclasses
from typing import Protocol

import keras
import keras_hub

from training.batches.labelled import Labelled


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """The figures of an evaluation on dev sets, and the model's answers.

    Attributes:
        figures: dict of floats from 0 to 1, or losses.
        files: dict from the names of files to write to their text.
    """

    figures: dict[str, float]
    files: dict[str, str] = dataclasses.field(default_factory=dict)


class FinetuningKind(Protocol):
    """A kind of task: its data, its head, its loss and its figures.

    Attributes:
        train: `Labelled`, to train on.
        decides: The name of the figure that decides which epoch is best.
        baseline: The figures of always predicting the most frequent class.
        preprocessor: The preprocessor that is saved with the model.
    """

    train: Labelled
    decides: str
    baseline: dict[str, float]
    preprocessor: keras_hub.models.Preprocessor

    def build(self, backbone: keras_hub.models.Backbone) -> keras.Model:
        """Returns a task with a new head."""

    def compile(
        self, task: keras.Model, optimizer: keras.optimizers.Optimizer
    ) -> None:
        """Compiles a task with its loss and metrics."""

    def evaluate(self, task: keras.Model) -> Evaluated:
        """Returns the figures of all dev sets, from 0 to 1."""
