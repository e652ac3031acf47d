"""What papers compare, and at which sizes to do so."""

import dataclasses
from collections.abc import Mapping
from typing import Any
from typing import Literal
from typing import TypeAlias

#: Fields of a recipe, by name.
Options: TypeAlias = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One of a paper's models."""

    # What tables call it.
    title: str
    # Its layers with memory, `"ffn"` without any.
    block: Literal["ffn", "pkm", "resm"]
    # Whether it starts from the plain model ("+Init"), and so sees as much text
    # once more.
    goes_on: bool = False
    # Whether the feed-forward networks beside the memories start anew.
    fresh_feed_forward: bool = False
    # Its title in the tables of Kim and Jung, if it is in them.
    in_table: str | None = None
    # Fields of `training/pretrain.py`'s recipe that make it differ.
    pretraining: Options = dataclasses.field(default_factory=dict)

    @property
    def has_memory(self) -> bool:
        """Whether it has a memory."""
        return self.block != "ffn"

    @property
    def fine_tunings(self) -> tuple[str, ...]:
        """What happens to its memory in fine-tuning."""
        return ("updated", "frozen") if self.has_memory else ("updated",)


# Tables 2, 4 and 5, and ResM' of figure 3.
_KIM_JUNG = {
    "a": Candidate("BERT", "ffn", in_table="BERT-BASE"),
    "b": Candidate(
        "BERT, trained twice as long",
        "ffn",
        goes_on=True,
        in_table="BERT-BASE, 500k steps more",
    ),
    "c": Candidate("+PKM", "pkm", in_table="+PKM"),
    "d": Candidate("+ResM", "resm", in_table="+ResM"),
    "e": Candidate("+Init+PKM", "pkm", goes_on=True, in_table="+Init+PKM"),
    "f": Candidate("+Init+ResM", "resm", goes_on=True, in_table="+Init+ResM"),
    "g": Candidate(
        "+Init+ResM'", "resm", goes_on=True, fresh_feed_forward=True
    ),
}


@dataclasses.dataclass(frozen=True)
class Scale:
    """A size at which to repeat the comparison."""

    # Fields of the recipe of `training/pretrain.py`.
    pretraining: Options
    # Of one stage.
    steps: int
    # Fields of the recipe of `training/finetune.py`.
    fine_tuning: Options = dataclasses.field(default_factory=dict)
    # To fine-tune on.
    tasks: tuple[str, ...] = ()
    # Fields of the recipe of `training/evaluate_mlm.py`.
    measuring: Options = dataclasses.field(default_factory=dict)
    # The most training examples of a task, by its name.
    limits: dict[str, int] = dataclasses.field(default_factory=dict)


# What the models of both papers have at these sizes.
_LAPTOP = {
    "recipe": "laptop",
    "vocabulary_size": 8000,
    "sequence_length": 32,
    "num_layers": 4,
    "num_sub_keys": 128,
    "memory_heads": 4,
    "memory_top_k": 16,
    "memory_schedule": "linear",
    "learning_rate": 1.5e-3,
}
_QUICK = {
    "recipe": "laptop",
    "vocabulary_size": 300,
    "sequence_length": 32,
    "hidden_dim": 16,
    "num_heads": 2,
    "intermediate_dim": 16,
    "num_sub_keys": 8,
    "memory_top_k": 4,
    "memory_key_dim": 8,
    "batch_size": 128,
    "evaluate_every": 2,
}
_KIM_JUNG_SCALES = {
    "laptop": Scale(
        pretraining={
            **_LAPTOP,
            "memory_layers": (2, 3),
            "memory_learning_rate": 5e-3,
        },
        steps=3000,
        fine_tuning={
            "sequence_length": 32,
            "group_by_length": True,
            "epochs": 2,
            "learning_rate": 1e-3,
            "memory_learning_rate": 1e-3,
        },
        tasks=("cola", "sst2"),
        limits={"sst2": 8000},
    ),
    "paper": Scale(
        pretraining={"recipe": "paper-base", "strategy": "mirrored"},
        steps=500_000,
        fine_tuning={"strategy": "mirrored"},
        tasks=("squad", "mnli", "qqp", "qnli", "sst2", "cola"),
    ),
}
# The same commands within minutes. What they find means nothing.
_KIM_JUNG_QUICK = Scale(
    pretraining={**_QUICK, "num_layers": 1, "memory_layers": (1,)},
    steps=4,
    measuring={"limit": 128},
    fine_tuning={"sequence_length": 32, "epochs": 1},
    tasks=("sst2",),
    limits={"sst2": 64},
)
# Table 2: memories in more and more layers, a deeper and a wider model.
_LAMPLE = {
    "a": Candidate("GPT-2", "ffn"),
    "b": Candidate("+memory", "resm", pretraining={"memory_layers": (2,)}),
    "c": Candidate(
        "+2 memories", "resm", pretraining={"memory_layers": (2, 3)}
    ),
    "d": Candidate(
        "+3 memories", "resm", pretraining={"memory_layers": (1, 2, 3)}
    ),
    "e": Candidate("twice as deep", "ffn", pretraining={"num_layers": 8}),
    "f": Candidate(
        "twice as wide",
        "ffn",
        pretraining={"hidden_dim": 256, "intermediate_dim": 1024},
    ),
}
_LAMPLE_LAPTOP = Scale(
    pretraining={
        **_LAPTOP,
        "backbone": "gpt2",
        "memory_learning_rate": 1e-2,
    },
    steps=3000,
)
_LAMPLE_QUICK = Scale(
    pretraining={**_QUICK, "backbone": "gpt2", "num_layers": 3},
    steps=4,
    measuring={"limit": 128},
)


@dataclasses.dataclass(frozen=True)
class Paper:
    """A paper's comparison."""

    # Its authors and year.
    title: str
    # Its models, by the letters that stand for them.
    models: dict[str, Candidate]
    # Sizes at which to repeat it, by name.
    scales: dict[str, Scale]
    # The size that only shows that all commands work.
    quick: Scale
    # Pairs of models. The paper finds a lower perplexity for the first one of
    # each pair.
    perplexity_order: tuple[tuple[str, str], ...]
    # Pairs likewise, of which the first uses more of the lower memory's slots
    # (top-1).
    usage_order: tuple[tuple[str, str], ...] = ()
    # Pairs likewise, of which the first has the higher perplexity when its
    # memory has just been added.
    first_order: tuple[tuple[str, str], ...] = ()


PAPERS = {
    "kim-jung": Paper(
        "Kim and Jung, 2020",
        _KIM_JUNG,
        _KIM_JUNG_SCALES,
        _KIM_JUNG_QUICK,
        # The last two are what memory brings to a model that is trained on.
        perplexity_order=(
            *(("f", "e"), ("e", "c"), ("f", "d"), ("d", "b"), ("b", "a")),
            *(("f", "b"), ("e", "b")),
        ),
        usage_order=(("f", "e"), ("e", "d"), ("d", "c")),
        # ResM' and PKM are about the same then: a fresh feed-forward network
        # adds very little.
        first_order=(("e", "f"), ("g", "f")),
    ),
    "lample": Paper(
        "Lample et al., 2019",
        _LAMPLE,
        {"laptop": _LAMPLE_LAPTOP},
        _LAMPLE_QUICK,
        perplexity_order=(
            *(("b", "a"), ("c", "b"), ("d", "c")),
            *(("e", "a"), ("f", "a"), ("b", "e")),
        ),
    ),
}
