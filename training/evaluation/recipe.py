"""The settings of a perplexity measurement.

The command line has one flag for each field; the comment above is its help.
"""

import pathlib
from typing import Literal

from training.commands.fields import Count
from training.commands.fields import Seed
from training.commands.fields import check_fields
from training.commands.fields import check_unused
from training.commands.recipe_groups import TextOfModel
from training.commands.recipe_groups import recipe


@recipe
class EvaluationRecipe(TextOfModel):
    """Measure a language model on text.

    $ python training/evaluate_mlm.py --model runs/books --text held-out.txt
    $ python training/evaluate_mlm.py --model MODEL --text TEXT --pseudo
    $ python training/evaluate_mlm.py --model M --text T --ablate-memory zero

    Prints the perplexity with its standard error, and how much of each memory
    the text uses.

    --verbose also shows the messages of TensorFlow.
    """

    # The model: the directory of a pretraining run, whose last model is used; a
    # preset; or a local directory of transformers. For a causal model, bits per
    # byte are printed, too.
    model: str
    # The text: files or globs separated by commas, tfds:NAME[@SPLIT], or
    # python-docs.
    text: str
    # Seed of the masks. Models with the same vocabulary get the same masks.
    seed: Seed = 0
    # Measure pseudo-perplexity: mask one token of an input at a time, with one
    # pass for each.
    pseudo: bool = False
    # Measure the model without the contents of its memories: set all values to
    # zero, or shuffle the rows of the tables.
    ablate_memory: Literal["zero", "shuffle"] | None = None
    # Number of inputs in a batch.
    batch_size: Count = 64
    # JSON file to write the figures to.
    out: pathlib.Path | None = None

    def check(self) -> None:
        """Checks the numbers, and that no flag would do nothing."""
        check_fields(self)
        if self.pseudo:
            reason = "--pseudo masks each token once"
            check_unused(self, ("mask_rate", "seed"), reason)
