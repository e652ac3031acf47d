"""The model that `--init-from` names."""

import dataclasses
import pathlib

import keras_hub

from training.recipes import PretrainingRecipe
from training.user_error import UserError

_SIZES = ("num_layers", "num_heads", "hidden_dim", "intermediate_dim")


@dataclasses.dataclass(frozen=True)
class InitialModel:
    """A masked-LM task and the vocabulary that it was trained with.

    Args:
        masked_lm: keras-hub masked-LM task of a BERT, plain or with memory.
        vocabulary: list of str.
    """

    masked_lm: keras_hub.models.MaskedLM
    vocabulary: list[str]

    @property
    def backbone(self) -> keras_hub.models.Backbone:
        """The task's backbone."""
        return self.masked_lm.backbone


def load_initial_model(path: str | None) -> InitialModel | None:
    """Loads a run's last model, or a preset.

    Args:
        path: a run directory, a local preset directory, or None.

    Raises:
        UserError: `path` is none of these.
    """
    if path is None:
        return None
    directory = pathlib.Path(path)
    if (directory / "recipe.json").exists():
        directory = directory / "last"
    if not (directory / "config.json").exists():
        raise UserError(
            "--init-from must be a run directory with a model in last/ or a "
            f"preset directory with config.json, received '{path}'"
        )
    try:
        masked_lm = keras_hub.models.MaskedLM.from_preset(str(directory))
    except (ValueError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"--init-from must be a BERT that keras-hub can load, received "
            f"'{path}': {reason}"
        ) from error
    return InitialModel(
        masked_lm, masked_lm.preprocessor.tokenizer.get_vocabulary()
    )


def recipe_of_initial_model(
    recipe: PretrainingRecipe, initial: InitialModel | None
) -> PretrainingRecipe:
    """Returns the recipe with the sizes that the initial model decides on.

    Its memory, too, if it has one. There is no plain stage then: the initial
    model stands for it.
    """
    if initial is None:
        return recipe
    backbone = initial.backbone
    decided = {name: getattr(backbone, name) for name in _SIZES}
    if getattr(backbone, "memory_outputs", None):
        memory = backbone.transformer_layers[
            backbone.memory_layers[0] - 1
        ].product_key_memory.get_config()
        decided.update(
            memory_layers=backbone.memory_layers,
            memory_block=backbone.memory_block,
            num_sub_keys=memory["num_sub_keys"],
            memory_heads=memory["num_heads"],
            memory_top_k=memory["top_k"],
            memory_key_dim=memory["key_dim"],
            memory_value_dim=memory["value_dim"],
            query_normalization=memory["query_normalization"] or "none",
        )
    return dataclasses.replace(recipe, plain_steps=0, **decided)
