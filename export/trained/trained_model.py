"""A trained model with everything that its export needs."""

import dataclasses

import keras_hub

from export.graph.tokenize import check_tokenizer
from export.trained.recipe import ExportRecipe
from export.trained.source import Source
from keras_pkm.models import QuestionAnswerer
from keras_pkm.text.special_tokens import SpecialTokens
from training.runs.user_error import UserError

# The tasks that can be exported with text as inputs.
_TASKS = {
    "mlm": keras_hub.models.MaskedLM,
    "classifier": keras_hub.models.TextClassifier,
    "qa": QuestionAnswerer,
}
# Tokens of an input, if the preset has no preprocessor that defines it.
_LENGTH = 128


@dataclasses.dataclass(frozen=True)
class TrainedModel:
    """A trained model with everything that its export needs."""

    # The preset, and its run.
    source: Source
    # Keras-hub's tokenizer.
    tokenizer: keras_hub.tokenizers.Tokenizer
    # Its special tokens.
    special: SpecialTokens
    # Number of tokens of an input.
    sequence_length: int
    # Its task, or None.
    task: keras_hub.models.Task | None = None
    # Its encoder, or None for a preprocessor.
    backbone: keras_hub.models.Backbone | None = None

    @classmethod
    def load(cls, source: Source, recipe: ExportRecipe) -> "TrainedModel":
        """Loads the parts that `--what` needs."""
        tokenizer = source.load_tokenizer()
        if recipe.what != "encoder":
            check_tokenizer(tokenizer)
        special = SpecialTokens.of(tokenizer)
        length = recipe.sequence_length or source.sequence_length
        if recipe.what == "preprocessor":
            return cls(source, tokenizer, special, length or _LENGTH)
        task = None
        if recipe.what in _TASKS:
            task = source.load_task(_TASKS[recipe.what], recipe.what)
        elif source.has(keras_hub.models.MaskedLM):
            task = source.load_task(keras_hub.models.MaskedLM, recipe.what)
        backbone = task.backbone if task else source.load_backbone()
        longest = backbone.max_sequence_length
        length = length or min(_LENGTH, longest)
        if length > longest:
            raise UserError(
                f"--sequence-length must be at most the model's {longest}, "
                f"received {length}"
            )
        return cls(source, tokenizer, special, length, task, backbone)
