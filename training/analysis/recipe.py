"""The settings of an analysis of memories.

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
from training.runs.outputs import check_output_directory
from training.tasks.glue import GlueName


@recipe
class AnalysisRecipe(TextOfModel):
    """Show how a model uses its memories.

    $ python training/analyze_memory.py --model runs/books --text T --out report
    $ python training/analyze_memory.py --model served --text T --out report
    $ python training/analyze_memory.py --model M --text T --out R --runs A B

    Writes a report with tables and plots.

    --verbose also shows the messages of TensorFlow.
    """

    # The model: the directory of a run, whose last model is used, or its best
    # one after fine-tuning; a preset with memory; or an exported model, whose
    # report cannot show which tokens read which slots.
    model: str
    # Held-out text: files or globs separated by commas, tfds:NAME[@SPLIT], or
    # python-docs.
    text: str
    # Directory of the report; new or empty.
    out: pathlib.Path
    # Directory of an exported preprocessor, for exported encoders.
    preprocessor: str | None = None
    # Seed of the masks.
    seed: Seed = 0
    # Number of inputs in a batch.
    batch_size: Count = 64
    # Also measure the perplexity without the contents of the memories: with all
    # values set to zero, or with the rows of the tables shuffled, or both.
    ablate_memory: tuple[Literal["zero", "shuffle"], ...] = ()
    # Directories of other pretraining runs, whose training curves are drawn
    # beside the model's own.
    runs: tuple[str, ...] = ()

    # --- Classes of examples (figure 4) ---

    # GLUE task whose first two classes are compared.
    task: GlueName | None = None
    # The directory of GLUE's TSV files, or tfds.
    glue: str = "tfds"
    # The same model after fine-tuning, for the comparison of classes.
    fine_tuned: str | None = None

    def check(self) -> None:
        """Checks the numbers, and that the report can be written."""
        check_fields(self)
        if self.task is None:
            reason = "classes are compared with --task alone"
            check_unused(self, ("glue", "fine_tuned"), reason)
        if is_served(self.model):
            of_masks = ("seed", "mask_rate", "sequence_length")
            reason = f"'{self.model}' is exported, and reads lines as they are"
            check_unused(self, of_masks, reason)
        else:
            reason = f"'{self.model}' is not exported, and has its own"
            check_unused(self, ("preprocessor",), reason)
        check_output_directory(self.out, "--out")


def is_served(model: str) -> bool:
    """Whether `--model` names an exported model."""
    return (pathlib.Path(model) / "saved_model.pb").exists()
