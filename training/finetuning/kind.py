"""The interface between fine-tuning and a kind of task."""

import dataclasses
from typing import Protocol

import keras
import keras_hub

from training.batches.labelled import Labelled


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """The figures of an evaluation on dev sets, and the model's answers."""

    # Dict of floats from 0 to 1, or losses.
    figures: dict[str, float]
    # Dict from the names of files to write to their text.
    files: dict[str, str] = dataclasses.field(default_factory=dict)


class FinetuningKind(Protocol):
    """A kind of task: its data, its head, its loss and its figures."""

    # `Labelled`, to train on.
    train: Labelled
    # The name of the figure that decides which epoch is best.
    decides: str
    # The figures of always predicting the most frequent class.
    baseline: dict[str, float]
    # The preprocessor that is saved with the model.
    preprocessor: keras_hub.models.Preprocessor

    def build(self, backbone: keras_hub.models.Backbone) -> keras.Model:
        """Returns a task with a new head."""

    def compile(
        self, task: keras.Model, optimizer: keras.optimizers.Optimizer
    ) -> None:
        """Compiles a task with its loss and metrics."""

    def evaluate(self, task: keras.Model) -> Evaluated:
        """Returns the figures of all dev sets, from 0 to 1."""
