"""The progress of a seed of fine-tuning, for checkpoints."""

import dataclasses

from training.fitting.progress import Progress


@dataclasses.dataclass
class SeedProgress(Progress):
    """The figures of a seed so far; only `EvaluateDevSets` changes them."""

    # The figures after each epoch.
    epochs: list[dict] = dataclasses.field(default_factory=list)
    # The number of the best epoch, counted from 1.
    best: int = 0
