"""The settings of a comparison of teaching methods.

The command line has one flag for each field; the comment above is its help.
"""

import dataclasses
import os
import pathlib
from typing import Literal

from training.commands.recipe_checks import check_between_0_and_1
from training.commands.recipe_checks import check_numbers
from training.commands.recipe_checks import out_of_range
from training.runs.user_error import UserError


@dataclasses.dataclass(frozen=True)
class ForgettingRecipe:
    """Compare teaching methods: what a model learns, and what it forgets.

    $ python training/teach.py --compare --out forgetting
    $ python training/teach.py --compare --out forgetting --seeds 3
    $ python training/teach.py --compare --model M --text T --keep K --out F

    Models with memory first learn random facts. Each method then teaches them
    new facts, one small group after another, with several learning rates. With
    --model, a run of your own is taught --text instead. If the command is
    repeated, it skips the jobs that are finished.

    --verbose also shows the messages of TensorFlow.
    """

    # Directory of the figures and the report.
    out: pathlib.Path
    # The methods to compare. They train all weights (all), all weights with old
    # facts in each batch (replay), the feed-forward networks (ffn), only the
    # head (head), LoRA (lora), all values that a batch reads (values-...), or
    # the values that matter most to a batch (slots-...).
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

    # Number of random facts that the model learns first.
    old_facts: int = 10_000
    # Number of random facts that it is then taught.
    new_facts: int = 500
    # Number of facts that are taught together.
    group_size: int = 50
    # Number of passes over the old facts when they are first learned.
    epochs: int = 40
    # Number of seeds of facts and initial weights. It can be raised later.
    seeds: int = 1

    # --- A run instead ---

    # The directory of a pretraining run with memory.
    model: str | None = None
    # The text that it is taught: files or globs separated by commas.
    text: str | None = None
    # The text on which forgetting is measured.
    keep: str | None = None
    # Text that the run was trained on. It shows which slots are specific to the
    # new text. Default: the run's own training text.
    background: str | None = None
    # The text counts as learned once its perplexity has fallen to this share of
    # what it was.
    fall: float = 0.5
    # Number of sequences in a batch.
    batch_size: int = 32

    # --- Teaching ---

    # Maximum number of steps on a group of facts, or on the text.
    steps: int = 20
    # Learning rates to try for methods that train weights, with Adam.
    learning_rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
    # Learning rates to try for memory values with Adam.
    memory_learning_rates: tuple[float, ...] = (3e-3, 1e-2, 3e-2, 1e-1)
    # Learning rates to try for memory values with gradient descent.
    memory_sgd_rates: tuple[float, ...] = (10.0, 20.0, 50.0, 100.0, 200.0)
    # Number of slots of each memory that a batch may change, for the methods
    # slots-adam and slots-sgd.
    slots: int = 1000

    # --- Machine ---

    # Number of models to teach in parallel. Default: two, if there are two
    # cores.
    processes: int | None = None

    @property
    def at_once(self) -> int:
        """The number of models that are taught in parallel."""
        return self.processes or min(2, os.cpu_count() or 1)

    def check(self) -> None:
        """Checks the numbers."""
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
