"""The progress of a stage of pretraining, for checkpoints."""

import dataclasses

from training.fitting.progress import Progress


@dataclasses.dataclass
class StageProgress(Progress):
    """The figures of a stage so far, and of the stages before it.

    It is created when a stage begins; only the callbacks of
    `training.pretraining.stage_callbacks` change it.
    """

    # The figures of the stages before.
    finished: list[dict] = dataclasses.field(default_factory=list)
    # The held-out perplexity before the first step, if the stage starts from
    # another model.
    perplexity_before: float | None = None
    # The lowest held-out perplexity so far.
    lowest: float = float("inf")
    # The stage's figures at the last evaluation.
    figures: dict = dataclasses.field(default_factory=dict)
