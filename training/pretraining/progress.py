"""The progress of a stage of pretraining, for checkpoints."""

import dataclasses

from training.fitting.progress import Progress


@dataclasses.dataclass
class StageProgress(Progress):
    """The figures of a stage so far, and of the stages before it.

    It is created when a stage begins; only the callbacks of
    `training.pretraining.stage_callbacks` change it.

    Attributes:
        finished: The figures of the stages before.
        perplexity_before: The held-out perplexity before the first step, if the
            stage starts from another model.
        lowest: The lowest held-out perplexity so far.
        figures: The stage's figures at the last evaluation.
    """

    finished: list[dict] = dataclasses.field(default_factory=list)
    perplexity_before: float | None = None
    lowest: float = float("inf")
    figures: dict = dataclasses.field(default_factory=dict)
