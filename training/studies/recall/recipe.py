"""The settings of a comparison of how many facts models can know.

The command line has one flag for each field; the comment above is its help.
"""

import math
from typing import Annotated
from typing import Any
from typing import Literal

import tyro
from pydantic import Field

from training.commands.fields import DISTINCT
from training.commands.fields import Count
from training.commands.fields import Counts
from training.commands.fields import NotNegatives
from training.commands.fields import Positive
from training.commands.fields import Positives
from training.commands.fields import Rate
from training.commands.fields import check_fields
from training.commands.fields import out_of_range
from training.commands.recipe_groups import Comparison
from training.commands.recipe_groups import MemorySizes
from training.commands.recipe_groups import ModelSizes
from training.commands.recipe_groups import Schedule
from training.commands.recipe_groups import recipe
from training.facts.fact_batches import Facts
from training.facts.open_facts import open_facts
from training.runs.user_error import UserError
from training.studies.recall.candidates import CandidateName


@recipe
class RecallRecipe(ModelSizes, MemorySizes, Schedule, Comparison):
    """Measure how many facts a model can know, with and without memory.

    $ python training/recall.py --out recall
    $ python training/recall.py --out names --facts unicode
    $ python training/recall.py --out proof --full --sweep facts

    Facts are (subject, relation) → value. A model reads [CLS] subject relation
    [MASK] [SEP] and predicts the value, as a masked language model. All models
    train for the same time, and are then tested on all facts. If the command is
    repeated, it skips the jobs that are finished.

    --verbose also shows the messages of TensorFlow.
    """

    # Run the full comparison: all candidates, three seeds, and the best
    # learning rates for each candidate. It takes hours.
    full: bool = False

    # --- Facts ---

    # The facts to learn: a number of random facts; unicode for the names of
    # Unicode's characters; or a TSV file with the columns subject, relation and
    # value.
    facts: str = "48000"
    # Number of different values of random facts.
    values: Annotated[Count, Field(ge=2)] = 1024
    # Number of relations of each subject of random facts.
    relations: Count = 4
    # Number of interchangeable words for each of the three words of a random
    # subject, 1 or at least 3. Each time a fact is trained, its words are drawn
    # anew. It is tested in words of which no two are ever trained together.
    synonyms: Count = 1
    # Size of the vocabulary that is trained for facts that are text.
    vocabulary_size: Count = 2000

    # --- Candidates ---

    # What learns the facts: a BERT that predicts a masked value, or a GPT-2
    # that predicts the value as the next token (causal). In a GPT-2, the memory
    # comes after the layer, so that pkm is not available.
    objective: Literal["masked", "causal"] = "masked"
    # The models to compare. wide-time is a plain model widened to the step time
    # of resm, wide-parameters to its number of parameters; init-resm trains
    # without memory for the first half of the time; experts-1 and experts-2
    # have, beside a feed-forward network, a mixture of experts with as many
    # parameters as the table; ngrams reads its memory at hashes of two and
    # three tokens, ngrams-question at hashes of four, a whole question. The
    # others are resm or pkm with a different option of the memory or the
    # optimizer.
    candidates: Annotated[tuple[CandidateName, ...], DISTINCT] = (
        "plain",
        "wide-time",
        "resm",
    )
    num_layers: Count = 2
    hidden_dim: Count = 64
    num_heads: Count = 4
    intermediate_dim: Count = 256
    # Layers with a memory, counted from 1.
    memory_layers: Counts = (1,)
    num_sub_keys: Count = 256
    memory_heads: Count = 2
    memory_top_k: Count = 8
    memory_key_dim: Count = 64

    # --- Training ---

    # Training time of each candidate. Step times are measured first, in turn,
    # to convert it into a number of steps.
    seconds: Positive = 150.0
    # Number of steps of each candidate, instead of --seconds.
    steps: Count | None = None
    # How often each candidate sees each random fact, instead of --seconds.
    exposures: Count | None = None
    batch_size: Count = 512
    # Peak learning rates of everything but the memory values. If there are
    # several, each candidate uses the one with which it knows most; the choice
    # is made with a separate seed.
    learning_rates: NotNegatives = (2e-3,)
    # Peak learning rates of candidates without a memory. Default: the same as
    # for the others.
    plain_learning_rates: NotNegatives | None = None
    # Learning rates of the memory values, chosen like --learning-rates.
    memory_learning_rates: NotNegatives = (3e-2,)
    # Learning rates of experts, as multiples of the rate of all other weights,
    # chosen like --learning-rates.
    expert_rates: Positives = (1.0,)
    # Schedule of the memory values' learning rate: constant, or linear like the
    # other rate.
    memory_schedule: Literal["constant", "linear"] = "linear"
    warmup_ratio: Rate = 0.05

    # --- Sweeps ---

    # With facts, also find by bisection the largest of --sweep-facts that each
    # candidate learns, and that resm learns with each of --sweep-sub-keys.
    sweep: Literal["none", "facts"] = "none"
    # Numbers of random facts in the sweep.
    sweep_facts: Counts = (7_500, 15_000, 30_000, 60_000, 120_000)
    # Numbers of sub-keys of resm in the sweep.
    sweep_sub_keys: Counts = (64, 128, 256, 512)

    # --- Machine ---

    def steps_for(self, num_facts: int | None) -> int | None:
        """Returns the number of steps, or `None` where seconds count."""
        if self.exposures is None or num_facts is None:
            return self.steps
        return math.ceil(self.exposures * num_facts / self.batch_size)

    @property
    def has_random_facts(self) -> bool:
        """Whether the facts are random."""
        return self.facts.isdecimal()

    @property
    def num_random_facts(self) -> int | None:
        """The number of random facts, or `None` for other facts."""
        return int(self.facts) if self.has_random_facts else None

    def open_facts(self, num_facts: int | None = None) -> Facts:
        """Returns the facts to learn."""
        return open_facts(
            self.facts if num_facts is None else str(num_facts),
            values=self.values,
            relations=self.relations,
            synonyms=self.synonyms,
            vocabulary_size=self.vocabulary_size,
            causal=self.objective == "causal",
        )

    @property
    def numbers_of_facts(self) -> set[int | None]:
        """All numbers of random facts that are learned, or only `None`."""
        numbers = {self.num_random_facts}
        return numbers | set(self.sweep_facts if self.sweep == "facts" else ())

    def check(self) -> None:
        """Checks the numbers."""
        check_fields(self)
        if self.objective == "causal" and any(
            key.startswith("pkm") for key in self.candidates
        ):
            raise out_of_range(
                self, "candidates", "without pkm with --objective causal"
            )
        if self.synonyms > 1 and not self.has_random_facts:
            raise out_of_range(self, "synonyms", "1 with facts that are text")
        if self.exposures and (self.steps or not self.has_random_facts):
            raise out_of_range(
                self, "exposures", "without --steps, and with random facts"
            )
        if self.sweep == "facts" and not self.has_random_facts:
            raise UserError(
                f"--sweep facts needs random facts, received --facts "
                f"{self.facts}: pass a number"
            )


# The settings of --full; each can be overridden by its flag.
FULL: dict[str, Any] = {
    "full": True,
    "facts": "60000",
    "candidates": (
        *("plain", "wide-time", "wide-parameters"),
        *("pkm", "resm", "init-resm"),
    ),
    "seconds": 480.0,
    "learning_rates": (1e-3, 2e-3, 4e-3),
    "memory_learning_rates": (1e-2, 3e-2),
    "expert_rates": (1.0, 4.0),
    "seeds": 3,
}


def parse_recipe(args: list[str]) -> RecallRecipe:
    """Returns the recipe of a command line."""
    changes = FULL if "--full" in args else {}
    default = RecallRecipe(out=tyro.MISSING, **changes)
    return tyro.cli(RecallRecipe, args=args, default=default)
