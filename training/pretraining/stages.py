"""The stages of a pretraining run."""

import dataclasses
from typing import Literal

from training.pretraining.recipe import PretrainingRecipe

Block = Literal["resm", "pkm", "ffn", "serial"]


@dataclasses.dataclass(frozen=True)
class Stage:
    """One stage of pretraining: its block, its number of steps, its names."""

    # 0 for a stage with random initial weights, 1 for a stage that starts from
    # another model. They have different orders of rows and different masks.
    number: int
    # The name of its files.
    label: str
    # Its name in tables.
    name: str
    # The block of the layers with memory, `"ffn"` for a plain model.
    block: Block
    steps: int
    # Number of steps between two evaluations; a divisor of `steps`.
    evaluate_every: int

    @property
    def has_fresh_weights(self) -> bool:
        """Whether it has random initial weights."""
        return self.number == 0


def plan_stages(recipe: PretrainingRecipe) -> list[Stage]:
    """Returns the stages of a run: one, or two with `--plain-steps`."""

    def stage(
        number: int, label: str, name: str, block: Block, steps: int
    ) -> Stage:
        every = recipe.evaluate_every or default_evaluate_every(steps)
        return Stage(number, label, name, block, steps, every)

    block, steps = recipe.memory_block, recipe.steps
    if not (recipe.plain_steps or recipe.init_from):
        return [stage(0, block, block, block, steps)]
    name = "plain, continued" if block == "ffn" else f"+Init {block}"
    last = stage(1, block, name, block, steps)
    if not recipe.plain_steps:
        return [last]
    return [stage(0, "plain", "plain", "ffn", recipe.plain_steps), last]


def default_evaluate_every(steps: int) -> int:
    """Returns the interval, in steps, of at most five evaluations."""
    evaluations = next(n for n in (5, 4, 3, 2, 1) if steps % n == 0)
    return steps // evaluations
