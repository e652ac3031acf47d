"""What a comparison of ways to teach consists of, as data.

The command line has one flag for each field, whose help is the comment above.
"""

import dataclasses
import os
import pathlib
from typing import Literal

from keras_pkm.runs.user_error import UserError
from training.commands.recipe_checks import check_between_0_and_1
from training.commands.recipe_checks import check_numbers
from training.commands.recipe_checks import out_of_range


@dataclasses.dataclass(frozen=True)
class ForgettingRecipe:
    """Compare ways to teach a model: what it learns, and what it forgets.

    Models with a memory learn random facts, and are then taught new ones in a
    stream of small groups, in each way with several learning rates. With
    --model it is a run that is taught --text. What is finished is skipped when
    the command is given again.

    --verbose shows the messages of TensorFlow, too.
    """

    # Directory of the figures and the report.
    out: pathlib.Path
    # The ways to compare: all weights, the same with old facts in each batch,
    # the feed-forward networks, the head, LoRA, the memory's values, and the
    # most important ones of each batch.
    methods: tuple[
        Literal[
            "all",
            "replay",
            "ffn",
            "head",
            "lora",
            "values-adam",
            "values-sgd",
            "slots-adam",
            "slots-sgd",
        ],
        ...,
    ] = (
        *("all", "replay", "ffn", "head", "lora"),
        *("values-adam", "values-sgd", "slots-adam", "slots-sgd"),
    )

    # --- Random facts ---

    # Random facts that the model knows before.
    old_facts: int = 10_000
    # Random facts that it is taught.
    new_facts: int = 500
    # Facts of a group, which are taught together.
    group_size: int = 50
    # Passes over the old facts, to learn them.
    epochs: int = 40
    # Seeds of facts and weights. More can be asked for later.
    seeds: int = 1

    # --- A run instead ---

    # The directory of a pretraining run with a memory.
    model: str | None = None
    # The text that it is taught: files or globs separated by commas.
    text: str | None = None
    # The text whose perplexity is to stay as it is.
    keep: str | None = None
    # Text that the run was trained on, which tells important slots from those
    # that all text reads. Default: that of the run.
    background: str | None = None
    # The text counts as learned when its perplexity has fallen to this share.
    fall: float = 0.5
    # Sequences in a batch.
    batch_size: int = 32

    # --- Teaching ---

    # The most steps of a group of facts, or of the text.
    steps: int = 20
    # Learning rates to try where weights are trained, by Adam.
    learning_rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
    # Learning rates of memory values by Adam.
    memory_learning_rates: tuple[float, ...] = (3e-3, 1e-2, 3e-2, 1e-1)
    # Learning rates of memory values by gradient descent.
    memory_sgd_rates: tuple[float, ...] = (10.0, 20.0, 50.0, 100.0, 200.0)
    # Slots of each memory that a batch may change, where these are chosen.
    slots: int = 1000

    # --- Machine ---

    # Models to teach at the same time. Default: two, if there are two cores.
    processes: int | None = None

    @property
    def at_once(self) -> int:
        """How many models are taught at the same time."""
        return self.processes or min(2, os.cpu_count() or 1)

    def check(self) -> None:
        """Checks the numbers.

        Raises:
            UserError: one of them is out of range.
        """
        check_numbers(
            self,
            old_facts=1,
            new_facts=1,
            group_size=1,
            epochs=1,
            seeds=1,
            steps=1,
            slots=1,
            batch_size=1,
            processes=1,
        )
        check_between_0_and_1(self, "fall")
        for name in (
            *("methods", "learning_rates"),
            *("memory_learning_rates", "memory_sgd_rates"),
        ):
            found = getattr(self, name)
            if not found or len(set(found)) < len(found):
                raise out_of_range(self, name, "at least one, each only once")
            if name != "methods" and min(found) <= 0:
                raise out_of_range(self, name, "above 0")
        of_a_run = (self.model, self.text, self.keep)
        if any(of_a_run) and not all(of_a_run):
            raise UserError(
                "--compare with --model needs --text, which is taught, and "
                "--keep, the text to keep: pass all three, or none of them"
            )
