"""Paths of the logs of a stage of pretraining."""

import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class StageLogs:
    """Paths of the logs of a stage of pretraining.

    Attributes:
        epochs: CSV file of Keras' own figures, a row for each evaluation.
        perplexity: CSV file of the training perplexity by step.
        memory: CSV file of the usage of each memory by step.
        slots: Directory of the reads of each slot, a file for each
            measurement.
        tensorboard: Directory of TensorBoard summaries.
        memory_tensorboard: Directory of TensorBoard summaries of the memories.
    """

    epochs: pathlib.Path
    perplexity: pathlib.Path
    memory: pathlib.Path
    slots: pathlib.Path
    tensorboard: pathlib.Path
    memory_tensorboard: pathlib.Path
