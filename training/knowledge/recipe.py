"""What a comparison of how much models can know consists of, as data.

The command line has one flag for each field, whose help is the comment above.
"""

import argparse
import dataclasses
import os
import pathlib
from typing import Literal

import tyro

from keras_pkm.runs.user_error import UserError
from training.commands.recipe_checks import check_above_0
from training.commands.recipe_checks import check_from_0_to_1
from training.commands.recipe_checks import check_numbers
from training.commands.recipe_checks import out_of_range
from training.facts.fact_batches import Facts
from training.facts.open_facts import open_facts


@dataclasses.dataclass(frozen=True)
class RecallRecipe:
    """Measure how many facts a model can know, with a memory and without.

    Facts are (subject, relation) → value. A model reads [CLS] subject relation
    [MASK] [SEP] and predicts the value, as a masked language model. All models
    train for the same time, and are then asked for all facts. What is finished
    is skipped when the command is given again.

    --verbose shows the messages of TensorFlow, too.
    """

    # Directory of the figures and the report.
    out: pathlib.Path
    # The proof instead of a first look: all contenders, three seeds, each
    # with its own best learning rates. Takes hours.
    full: bool = False

    # --- Facts ---

    # A number of random facts; unicode, the names of Unicode's characters; or a
    # TSV file with the columns subject, relation and value.
    facts: str = "24000"
    # Values that a random fact can have.
    values: int = 1024
    # Relations of each subject of random facts.
    relations: int = 4
    # Size of the vocabulary that is trained for facts which are text.
    vocabulary_size: int = 2000

    # --- Contenders ---

    # What learns the facts: a BERT that predicts a masked value, or a GPT-2
    # that predicts the value as the next token (causal). The memory of a GPT-2
    # stands behind the layer; there is no pkm then.
    objective: Literal["masked", "causal"] = "masked"
    # The models to compare. wide-time is the plain one, widened to ResM's step
    # time; wide-parameters is widened to its parameters; init-resm is plain for
    # the first half of its time.
    contenders: tuple[
        Literal[
            "plain", "wide-time", "wide-parameters", "pkm", "resm", "init-resm"
        ],
        ...,
    ] = ("plain", "wide-time", "resm")
    # Encoder layers.
    num_layers: int = 2
    # Width of the encoder layers.
    hidden_dim: int = 64
    # Attention heads.
    num_heads: int = 4
    # Width of the feed-forward networks, where they are not widened.
    intermediate_dim: int = 256
    # Layers with a memory, counted from 1.
    memory_layers: tuple[int, ...] = (1,)
    # Sub-keys of each half; the memory has the square of it in slots.
    num_sub_keys: int = 256
    # Heads of a memory.
    memory_heads: int = 2
    # Slots that a head reads for a token.
    memory_top_k: int = 8
    # Width of a head's query.
    memory_key_dim: int = 64

    # --- Training ---

    # Time that each contender trains for. It becomes a number of steps once,
    # by step times that are measured in turn.
    seconds: float = 150.0
    # Steps of each contender, instead of --seconds.
    steps: int | None = None
    # Facts in a batch.
    batch_size: int = 512
    # Peak learning rates of all but the memory values. Of several, each
    # contender gets the one with which it knows most, of a seed of its own.
    learning_rates: tuple[float, ...] = (2e-3,)
    # Learning rates of the memory values, likewise.
    memory_learning_rates: tuple[float, ...] = (3e-2,)
    # Whether the rate of the memory values is constant, or follows the other.
    memory_schedule: Literal["constant", "linear"] = "linear"
    # Share of the steps in which the learning rates rise; then they fall to
    # zero.
    warmup_ratio: float = 0.05
    # Clip the norm of all gradients together.
    clip_norm: float | None = 1.0
    # Seeds to train each contender with. More can be asked for later.
    seeds: int = 1

    # --- Sweeps ---

    # Besides, let numbers of random facts double, and tables grow.
    sweep: Literal["none", "facts"] = "none"
    # Numbers of random facts of the sweep.
    sweep_facts: tuple[int, ...] = (7_500, 15_000, 30_000, 60_000, 120_000)
    # Sub-keys of ResM's tables in the sweep.
    sweep_sub_keys: tuple[int, ...] = (64, 128, 256, 512)

    # --- Machine ---

    # Models to train at the same time. Default: two, if there are two cores.
    # The time that counts is that of a model alone.
    processes: int | None = None

    @property
    def at_once(self) -> int:
        """How many models train at the same time."""
        return self.processes or min(2, os.cpu_count() or 1)

    @property
    def has_random_facts(self) -> bool:
        """Whether the facts are random ones."""
        return self.facts.isdecimal()

    @property
    def num_random_facts(self) -> int | None:
        """How many random facts there are."""
        return int(self.facts) if self.has_random_facts else None

    def open_facts(self, num_facts: int | None = None) -> Facts:
        """Returns the facts to learn.

        Args:
            num_facts: Of random facts their number, if it is another one.

        Raises:
            UserError: there are not as many, or a file cannot be used.
        """
        return open_facts(
            self.facts if num_facts is None else str(num_facts),
            values=self.values,
            relations=self.relations,
            vocabulary_size=self.vocabulary_size,
            causal=self.objective == "causal",
        )

    @property
    def numbers_of_facts(self) -> set[int | None]:
        """Of random facts all numbers that are learned, else `None` alone."""
        numbers = {self.num_random_facts}
        return numbers | set(self.sweep_facts if self.sweep == "facts" else ())

    def check(self) -> None:
        """Checks the numbers.

        Raises:
            UserError: one of them is out of range.
        """
        check_numbers(
            self,
            values=2,
            relations=1,
            steps=1,
            batch_size=1,
            seeds=1,
            processes=1,
            intermediate_dim=1,
        )
        check_above_0(self, "seconds", "clip_norm")
        check_from_0_to_1(self, "warmup_ratio")
        for name in (
            *("contenders", "learning_rates", "memory_learning_rates"),
            *("sweep_facts", "sweep_sub_keys", "memory_layers"),
        ):
            found = getattr(self, name)
            if not found or len(set(found)) < len(found):
                raise out_of_range(self, name, "at least one, each only once")
        for name in ("learning_rates", "memory_learning_rates"):
            if min(getattr(self, name)) < 0:
                raise out_of_range(self, name, "at least 0")
        if self.objective == "causal" and "pkm" in self.contenders:
            raise out_of_range(
                self, "contenders", "without pkm with --objective causal"
            )
        if self.sweep == "facts" and not self.has_random_facts:
            raise UserError(
                f"--sweep facts needs random facts, received --facts "
                f"{self.facts}: pass a number"
            )


# Of the proof; all of them can be changed by their flags.
FULL = {
    "full": True,
    "facts": "60000",
    "contenders": (
        *("plain", "wide-time", "wide-parameters"),
        *("pkm", "resm", "init-resm"),
    ),
    "seconds": 480.0,
    "learning_rates": (1e-3, 2e-3, 4e-3),
    "memory_learning_rates": (1e-2, 3e-2),
    "seeds": 3,
}


def parse_recipe(args: list[str] | None) -> RecallRecipe:
    """Returns the recipe of a command line.

    Args:
        args: The command line, or `None` for this process's own.
    """
    full = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    full.add_argument("--full", action="store_true")
    known, _ = full.parse_known_args(args)
    changes = FULL if known.full else {}
    default = RecallRecipe(out=tyro.MISSING, **changes)
    return tyro.cli(RecallRecipe, args=args, default=default)
