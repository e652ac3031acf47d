"""The settings of a comparison of teaching methods.

The command line has one flag for each field; the comment above is its help.
"""

from typing import TYPE_CHECKING
from typing import Annotated
from typing import Literal

from training.commands.fields import DISTINCT
from training.commands.fields import Count
from training.commands.fields import Positives
from training.commands.fields import Share
from training.commands.fields import check_fields
from training.commands.fields import check_unused
from training.commands.recipe_groups import Comparison
from training.commands.recipe_groups import recipe
from training.runs.user_error import UserError
from training.studies.forgetting.candidates import CANDIDATES

if TYPE_CHECKING:
    MethodName = str
else:
    MethodName = Literal[tuple(CANDIDATES)]


@recipe
class ForgettingRecipe(Comparison):
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

    # The methods to compare. They train all weights (all), all weights with old
    # facts in each batch (replay), the feed-forward networks (ffn), only the
    # head (head), LoRA (lora), all values that a batch reads (values-...), or
    # the values that matter most to a batch (slots-...). Variants: a higher
    # rate for values (...-fast-values); a penalty that pulls all weights back
    # to the old ones (l2-...); replay of a tenth or a hundredth of the old
    # facts (replay-10, replay-1); LoRA of a given rank on the matrices of
    # attention and feed-forward networks; and slots chosen by frequency alone
    # or at random.
    methods: Annotated[tuple[MethodName, ...], DISTINCT] = (
        *("all", "replay", "ffn", "head", "lora"),
        *("values-adam", "values-sgd", "slots-adam", "slots-sgd"),
    )

    # --- Random facts ---

    # Number of random facts that the model learns first.
    old_facts: Count = 10_000
    # Number of random facts that the model is then taught.
    new_facts: Count = 500
    # Number of facts that are taught together.
    group_size: Count = 50
    # Number of passes over the old facts when they are first learned.
    epochs: Count = 40

    # --- A run instead ---

    # The directory of a pretraining run with memory.
    model: str | None = None
    # The text that the run is taught: files or globs separated by commas.
    text: str | None = None
    # The text on which forgetting is measured.
    keep: str | None = None
    # Text that the run was trained on. It shows which slots are specific to the
    # new text. Default: the run's own training text.
    background: str | None = None
    # The text counts as learned once its perplexity has fallen to this share of
    # what it was.
    fall: Share = 0.5
    # Number of sequences in a batch.
    batch_size: Count = 32

    # --- Teaching ---

    # Maximum number of steps on a group of facts, or on the text.
    steps: Count = 200
    # Learning rates to try for methods that train weights, with Adam.
    learning_rates: Positives = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
    # Learning rates to try for memory values with Adam.
    memory_learning_rates: Positives = (3e-3, 1e-2, 3e-2, 1e-1)
    # Learning rates to try for memory values with gradient descent.
    memory_sgd_rates: Positives = (10.0, 20.0, 50.0, 100.0, 200.0)
    # Number of slots of each memory that a batch may change, for the methods
    # that choose slots.
    slots: Count = 200

    # --- Machine ---

    def check(self) -> None:
        """Checks the numbers."""
        check_fields(self)
        of_a_run = (self.model, self.text, self.keep)
        if any(of_a_run) and not all(of_a_run):
            raise UserError(
                "--compare with --model needs --text, which is taught, and "
                "--keep, the text to keep: pass all three, or none of them"
            )
        if self.keep is not None and self.keep.endswith(".tsv"):
            raise UserError(
                f"--keep must be text with --compare, received '{self.keep}': "
                "pass the text that the model is to keep"
            )
        of_facts = ("old_facts", "new_facts", "group_size", "epochs")
        of_text = ("background", "fall", "batch_size")
        if self.model is not None:
            check_unused(self, of_facts, "--text is taught, not random facts")
        else:
            check_unused(self, of_text, "without --model, random facts are")
