"""What a measurement of perplexity consists of, as data.

The command line has one flag for each field, whose help is the comment above.
"""

import dataclasses
import pathlib
from typing import Literal

from training.commands.recipe_checks import check_between_0_and_1
from training.commands.recipe_checks import check_numbers


@dataclasses.dataclass(frozen=True)
class EvaluationRecipe:
    """Measure a language model on text.

    Prints its perplexity with a standard error, and how much of each memory the
    text uses, from the same pass.

    --verbose shows the messages of TensorFlow, too.
    """

    # The directory of a pretraining run, whose best model it is; a preset; or a
    # local directory of transformers. A causal model has its perplexity by
    # token, and bits per byte.
    model: str
    # Text files or globs separated by commas, tfds:NAME, or python-docs.
    text: str
    # Directory of prepared tfds data. With it nothing is downloaded.
    data_dir: str | None = None
    # Tokens of an input. Default: as many as the model takes, at most 512.
    sequence_length: int | None = None
    # Share of the tokens to predict; of them 80% are masked, 10% replaced, 10%
    # kept.
    mask_rate: float = 0.15
    # Seed of the masks: two models with the same vocabulary see the same.
    seed: int = 0
    # Mask each token alone instead (pseudo-perplexity), which takes as many
    # passes as an input has tokens.
    pseudo: bool = False
    # Use only so many inputs, the first ones.
    limit: int | None = None
    # Measure what is left without the contents of the memories: all values set
    # to zero, or the rows of the tables shuffled.
    ablate_memory: Literal["zero", "shuffle"] | None = None
    # Inputs in a batch.
    batch_size: int = 64
    # File to write the figures to, as JSON.
    output: pathlib.Path | None = None

    def check(self) -> None:
        """Checks the numbers.

        Raises:
            UserError: one of them is out of range.
        """
        check_numbers(self, sequence_length=8, batch_size=1, limit=1)
        check_between_0_and_1(self, "mask_rate")
