"""What is compared: a candidate is a model that learns facts."""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A model that learns facts."""

    # Its name in tables.
    title: str
    # The block of its layers with memory; `"ffn"` for no memory.
    block: Literal["ffn", "pkm", "resm"]
    # The candidates as which it trains, one after another, each for a share of
    # the time; none if as itself.
    trained_as: tuple[str, ...] = ()
    # Arguments of its memories besides those of the recipe.
    memory: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Arguments of its `PKMAdam` besides those of the recipe.
    optimizer: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Its layers with a memory, if not those of the recipe.
    memory_layers: tuple[int, ...] | None = None
    # Whether its memories read one table.
    share_table: bool = False
    # The n-grams at whose hashes its memories are read, instead of product
    # keys, with as many slots.
    ngrams: tuple[int, ...] | None = None
    # The number of hashes of each n-gram, if not that of the recipe's heads.
    ngram_heads: int | None = None
    # How many experts a token takes, of a mixture of as many parameters as the
    # table beside the first feed-forward network; 0 for no mixture.
    experts: int = 0
    # Its number of layers, times that of the recipe.
    times_layers: int = 1

    @property
    def has_memory(self) -> bool:
        """Whether it has a memory."""
        return self.block != "ffn"


CANDIDATES = {
    "plain": Candidate("plain", "ffn"),
    "wide-time": Candidate("plain, widened to ResM's step time", "ffn"),
    "wide-parameters": Candidate("plain, widened to ResM's parameters", "ffn"),
    "deeper": Candidate("plain, twice as deep", "ffn", times_layers=2),
    "experts-1": Candidate("mixture of experts, top 1", "ffn", experts=1),
    "experts-2": Candidate("mixture of experts, top 2", "ffn", experts=2),
    "ngrams": Candidate("n-grams of 2 and 3 tokens", "resm", ngrams=(2, 3)),
    "ngrams-question": Candidate(
        "n-grams of 4 tokens, a question", "resm", ngrams=(4,), ngram_heads=1
    ),
    "pkm": Candidate("PKM", "pkm"),
    "resm": Candidate("ResM", "resm"),
    "init-resm": Candidate("ResM+Init", "resm", trained_as=("plain", "resm")),
    "gate": Candidate("ResM, gated as Memory+", "resm", memory={"gate": True}),
    "half-layer": Candidate(
        "ResM, a layer norm of each half of a query",
        "resm",
        memory={"query_normalization": "half_layer"},
    ),
    "two-tables": Candidate(
        "ResM behind both layers", "resm", memory_layers=(1, 2)
    ),
    "shared-table": Candidate(
        "ResM behind both layers, with one table",
        "resm",
        memory_layers=(1, 2),
        share_table=True,
    ),
    "row-moments": Candidate(
        "ResM, one second moment a row",
        "resm",
        optimizer={"second_moment": "row"},
    ),
    "row-steps": Candidate(
        "ResM, steps counted by row",
        "resm",
        optimizer={"bias_correction": "row"},
    ),
    "row-moments-steps": Candidate(
        "ResM, one second moment a row, steps counted by row",
        "resm",
        optimizer={"second_moment": "row", "bias_correction": "row"},
    ),
    "key-dropout": Candidate(
        "ResM, each sub-key dropped in a tenth of the steps",
        "resm",
        memory={"key_dropout": 0.1},
    ),
    "head-dropout": Candidate(
        "ResM, each head dropped in a tenth of the steps",
        "resm",
        memory={"head_dropout": 0.1},
    ),
    "pkm-key-dropout": Candidate(
        "PKM, each sub-key dropped in a tenth of the steps",
        "pkm",
        memory={"key_dropout": 0.1},
    ),
    "pkm-head-dropout": Candidate(
        "PKM, each head dropped in a tenth of the steps",
        "pkm",
        memory={"head_dropout": 0.1},
    ),
}

if TYPE_CHECKING:
    CandidateName = str
else:
    CandidateName = Literal[tuple(CANDIDATES)]
