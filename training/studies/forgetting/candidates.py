"""The teaching methods that are compared."""

import dataclasses
from collections.abc import Callable
from typing import Any

from keras_pkm.teaching.slot_importance import SlotImportance
from training.studies.forgetting.chosen_slots import Frequency
from training.studies.forgetting.chosen_slots import RandomSlots
from training.teaching.methods import ALL_MATRICES
from training.teaching.methods import OF_MEMORIES
from training.teaching.methods import Lora
from training.teaching.methods import Method
from training.teaching.methods import Rule


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A teaching method."""

    # Its name in tables.
    title: str
    # The weights that are trained.
    method: Method
    # The update rule of memory values, if only these are trained.
    rule: Rule = "adam"
    # The share of the old facts that may be replayed.
    replayed: float = 1.0
    # What scores slots, made of how often the old facts read them, and a seed.
    scores: Callable[[SlotImportance, int], SlotImportance] = (
        lambda counted, seed: counted
    )
    # Further arguments of `make_teacher`.
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def rates_field(self) -> str:
        """The field of the recipe that has its learning rates."""
        if self.method not in OF_MEMORIES:
            return "learning_rates"
        if self.rule == "sgd":
            return "memory_sgd_rates"
        return "memory_learning_rates"


def _lora(rank: int) -> Candidate:
    return Candidate(
        f"LoRA on attention and networks, rank {rank}",
        "lora",
        options={"lora": Lora(rank, ALL_MATRICES)},
    )


CANDIDATES = {
    "all": Candidate("all weights", "all"),
    "all-fast-values": Candidate(
        "all weights, values 15 times as fast", "all", options={"of_values": 15}
    ),
    "l2-30": Candidate(
        "all weights, L2 towards the old, 30",
        "all",
        options={"towards_old": 30},
    ),
    "l2-300": Candidate(
        "all weights, L2 towards the old, 300",
        "all",
        options={"towards_old": 300},
    ),
    "replay": Candidate("all weights, the old replayed", "replay"),
    "replay-fast-values": Candidate(
        "all weights, the old replayed, values 15 times as fast",
        "replay",
        options={"of_values": 15},
    ),
    "replay-10": Candidate(
        "all weights, a tenth of the old replayed", "replay", replayed=0.1
    ),
    "replay-1": Candidate(
        "all weights, a hundredth of the old replayed", "replay", replayed=0.01
    ),
    "ffn": Candidate("feed-forward networks", "ffn"),
    "head": Candidate("masked-LM head", "head"),
    "lora": Candidate("LoRA", "lora"),
    "lora-8": _lora(8),
    "lora-32": _lora(32),
    "lora-128": _lora(128),
    "values-adam": Candidate("values, Adam", "values"),
    "values-sgd": Candidate("values, SGD", "values", "sgd"),
    "slots-adam": Candidate("important slots, Adam", "slots"),
    "slots-sgd": Candidate("important slots, SGD", "slots", "sgd"),
    "slots-frequent": Candidate(
        "slots that are read most, Adam", "slots", scores=Frequency
    ),
    "slots-random": Candidate(
        "random slots of those read, Adam", "slots", scores=RandomSlots
    ),
}
