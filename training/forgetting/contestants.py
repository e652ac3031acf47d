"""The teaching methods that are compared."""

import dataclasses

from training.forgetting.recipe import ForgettingRecipe
from training.teaching.methods import OF_MEMORIES
from training.teaching.methods import Method
from training.teaching.methods import Rule


@dataclasses.dataclass(frozen=True)
class Contestant:
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


CONTESTANTS = {
    "all": Contestant("all weights", "all"),
    "replay": Contestant("all weights, the old replayed", "replay"),
    "ffn": Contestant("feed-forward networks", "ffn"),
    "head": Contestant("masked-LM head", "head"),
    "lora": Contestant("LoRA", "lora"),
    "values-adam": Contestant("values, Adam", "values"),
    "values-sgd": Contestant("values, SGD", "values", "sgd"),
    "slots-adam": Contestant("important slots, Adam", "slots"),
    "slots-sgd": Contestant("important slots, SGD", "slots", "sgd"),
}
