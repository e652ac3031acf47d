"""What an analysis of memories consists of, as data.

The command line has one flag for each field, whose help is the comment above.
"""

import dataclasses
import pathlib
from typing import Literal

from keras_pkm.runs.outputs import check_output_directory
from training.commands.recipe_checks import check_between_0_and_1
from training.commands.recipe_checks import check_numbers


@dataclasses.dataclass(frozen=True)
class AnalysisRecipe:
    """Show how a model uses its memories.

    --verbose shows the messages of TensorFlow, too.
    """

    # The directory of a run, whose best model it is; a preset with memory; or
    # an exported model, of which the tokens are not known.
    model: str
    # Held-out text: files or globs separated by commas, tfds:NAME, or
    # python-docs.
    data: str
    # Directory of the report: new, or empty.
    out: pathlib.Path
    # Directory of an exported preprocessor, for exported encoders.
    preprocessor: str | None = None
    # Directory of prepared tfds data. With it nothing is downloaded.
    data_dir: str | None = None
    # Tokens of an input. Default: as many as the model takes, at most 512.
    sequence_length: int | None = None
    # Use only so many inputs, the first ones.
    limit: int | None = None
    # Share of the tokens that are masked, as when perplexity is measured.
    mask_rate: float = 0.15
    # Seed of the masks.
    seed: int = 0
    # Inputs in a batch.
    batch_size: int = 64
    # Also measure the perplexity without the contents of the memories: with all
    # values set to zero, with the rows of the tables shuffled.
    ablate_memory: tuple[Literal["zero", "shuffle"], ...] = ()
    # Other pretraining runs, whose curves are drawn beside the model's own.
    runs: tuple[str, ...] = ()

    # --- Classes of examples (figure 4) ---

    # GLUE task whose first two classes are compared.
    task: Literal["sst2", "cola", "mnli", "qqp", "qnli"] | None = None
    # GLUE's directory of TSV files, or tfds.
    glue: str = "tfds"
    # The same model after fine-tuning, to compare.
    fine_tuned: str | None = None

    def check(self) -> None:
        """Checks the numbers, and that the report has a place.

        Raises:
            UserError: the recipe cannot be carried out.
        """
        check_numbers(self, sequence_length=8, batch_size=1, limit=1)
        check_between_0_and_1(self, "mask_rate")
        check_output_directory(self.out, "--out")
