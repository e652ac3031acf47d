"""Where a stage of pretraining logs what it measures."""

import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class StageLogs:
    """Where a stage of pretraining logs what it measures.

    Attributes:
        epochs: CSV file of Keras' own figures, a row for each evaluation.
        perplexity: CSV file of the training perplexity, by the step.
        memory: CSV file of the use of each memory, by the step.
        slots: Directory of the reads of each slot, a file for each step.
        tensorboard: Directory of TensorBoard summaries.
        memory_tensorboard: Directory of those of the memories.
    """

    epochs: pathlib.Path
    perplexity: pathlib.Path
    memory: pathlib.Path
    slots: pathlib.Path
    tensorboard: pathlib.Path
    memory_tensorboard: pathlib.Path
