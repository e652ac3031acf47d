"""What the checkpoints of a pretraining stage keep."""

import dataclasses

from training.fitting.progress import Progress


@dataclasses.dataclass
class StageProgress(Progress):
    """How far a stage has come, and what the stages before it found.

    `training.pretraining.stage` owns it: it is created there when a stage
    begins, and only the callbacks that stand there change it.

    Attributes:
        finished: The figures of the stages before.
        perplexity_before: The held-out perplexity before the first step, of a
            stage that goes on from another model.
        lowest: The lowest held-out perplexity so far.
        figures: The stage's figures at the last evaluation.
    """

    finished: list[dict] = dataclasses.field(default_factory=list)
    perplexity_before: float | None = None
    lowest: float = float("inf")
    figures: dict = dataclasses.field(default_factory=dict)
