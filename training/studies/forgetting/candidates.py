"""The teaching methods that are compared."""

import dataclasses

from training.studies.forgetting.recipe import ForgettingRecipe
from training.teaching.methods import OF_MEMORIES
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

    def rates(self, recipe: ForgettingRecipe) -> tuple[float, ...]:
        """Returns the learning rates to try."""
        if self.method not in OF_MEMORIES:
            return recipe.learning_rates
        if self.rule == "sgd":
            return recipe.memory_sgd_rates
        return recipe.memory_learning_rates


CANDIDATES = {
    "all": Candidate("all weights", "all"),
    "replay": Candidate("all weights, the old replayed", "replay"),
    "ffn": Candidate("feed-forward networks", "ffn"),
    "head": Candidate("masked-LM head", "head"),
    "lora": Candidate("LoRA", "lora"),
    "values-adam": Candidate("values, Adam", "values"),
    "values-sgd": Candidate("values, SGD", "values", "sgd"),
    "slots-adam": Candidate("important slots, Adam", "slots"),
    "slots-sgd": Candidate("important slots, SGD", "slots", "sgd"),
}
