"""The settings of a comparison of ways to teach a finished model.

The command line has one flag for each field; the comment above is its help.
"""

from typing import TYPE_CHECKING
from typing import Annotated
from typing import Literal

from pydantic import Field

from training.commands.fields import DISTINCT
from training.commands.fields import Count
from training.commands.fields import NotNegatives
from training.commands.fields import Positives
from training.commands.fields import Whole
from training.commands.fields import check_fields
from training.commands.recipe_groups import Comparison
from training.commands.recipe_groups import recipe
from training.runs.user_error import UserError
from training.studies.edits.ways import WAYS

if TYPE_CHECKING:
    WayName = str
else:
    WayName = Literal[tuple(WAYS)]
#: Number of relations of which there are invented facts.
NUM_RELATIONS = 10
#: Number of phrasings of each relation that can be taught.
NUM_PHRASINGS = 5


@recipe
class EditsRecipe(Comparison):
    """Compare ways to teach facts to a finished language model.

    $ python training/teach.py --compare-edits --model SmolLM2-135M --out edits
    $ python training/teach.py --compare-edits --model M --out quick --quick

    Each way teaches invented facts about invented people in several phrasings,
    with several learning rates, until all are known. The model is then asked in
    other phrasings, and about all that must stay as it was: other names, other
    questions about the same people, what the model knew, and text. If the
    command is repeated, it skips the jobs that are finished.

    --verbose also shows the messages of TensorFlow.
    """

    # The model: a directory of transformers, a preset, or a run.
    model: str
    # The ways to compare: the model with a subject's facts in its prompt, in
    # one phrasing (prompt-one) or in all (prompt-all); the memory of facts,
    # called facts; one row per subject behind a low block (ngram) or behind
    # three (ngram-three); product keys, where all values that are read may
    # change (product-keys) or only the important slots (product-keys-slots);
    # LoRA (lora-8 and so on); all weights (all); and all weights with text in
    # each batch (replay).
    ways: Annotated[tuple[WayName, ...], DISTINCT] = tuple(WAYS)
    # Compare in minutes: ten facts and one rate per way.
    quick: bool = False

    # --- Facts ---

    # Number of facts.
    facts: Annotated[Count, Field(le=4000)] = 50
    # Number of facts of each subject.
    facts_per_subject: Annotated[Count, Field(le=NUM_RELATIONS)] = 1
    # Number of relations that the facts have.
    relations: Annotated[Count, Field(le=NUM_RELATIONS)] = 3
    # Number of phrasings in which each fact is taught.
    taught_phrasings: Annotated[Count, Field(le=NUM_PHRASINGS)] = NUM_PHRASINGS
    # Number of groups in which the facts are taught, one after the other.
    groups: Count = 1
    # Which untaught phrasings are asked: tuning for those with which settings
    # were chosen, or final for those never used for that.
    asked: Literal["tuning", "final"] = "final"
    # The first seed. Settings were chosen with the seeds from 10 on.
    first_seed: Whole = 0
    # Text on which the model is measured: files or globs separated by commas,
    # tfds:NAME[@SPLIT], or python-docs.
    text: str = "python-docs"

    # --- Teaching ---

    # Maximum number of passes over the phrasings of a group of facts.
    passes: Count = 40
    # Odds to try for the memory of facts: how readily it takes a text for a
    # question.
    odds: NotNegatives = (1.0, 3.0)
    # Learning rates to try for rows of subjects, with Adam.
    ngram_rates: Positives = (0.03, 0.1, 0.3)
    # Learning rates to try for the values of product keys, with Adam.
    product_key_rates: Positives = (0.03, 0.1)
    # Learning rates to try for LoRA, with Adam.
    lora_rates: Positives = (1e-4, 3e-4, 1e-3)
    # Learning rates to try for all weights, with Adam.
    weight_rates: Positives = (1e-5, 2e-5, 5e-5)

    def check(self) -> None:
        """Checks the numbers."""
        check_fields(self)
        if self.facts_per_subject > self.relations:
            raise UserError(
                "--facts-per-subject must be at most --relations, "
                f"{self.relations}, received {self.facts_per_subject}"
            )
        if self.groups > self.num_facts:
            raise UserError(
                f"--groups must be at most the number of facts, "
                f"{self.num_facts}, received {self.groups}"
            )

    @property
    def num_facts(self) -> int:
        """The number of facts, which `--quick` lowers."""
        return min(self.facts, 10) if self.quick else self.facts
