"""Checks a recipe before anything is written."""

from training.commands.fields import check_fields
from training.commands.fields import out_of_range
from training.finetuning.recipe import FinetuningRecipe
from training.loading.pretrained_model import PretrainedModel
from training.runs.user_error import UserError


def check_recipe(recipe: FinetuningRecipe, pretrained: PretrainedModel) -> None:
    """Checks the numbers of a recipe, and that its flags fit the model."""
    check_fields(recipe)
    longest = pretrained.backbone.max_sequence_length
    if recipe.sequence_length > longest:
        raise out_of_range(
            recipe, "sequence_length", f"at most the model's {longest}"
        )
    if recipe.devices and recipe.batch_size % recipe.devices:
        raise out_of_range(
            recipe, "batch_size", f"a multiple of the {recipe.devices} devices"
        )
    for name in (
        "memory_block",
        "num_sub_keys",
        "memory_heads",
        "memory_top_k",
        "memory_key_dim",
    ):
        default = FinetuningRecipe.__dataclass_fields__[name].default
        if getattr(recipe, name) != default and not recipe.memory_layers:
            raise UserError(
                f"--{name.replace('_', '-')} needs the layers that get a "
                "memory: pass --memory-layers, such as 4 8"
            )
    if recipe.freeze and not pretrained.backbone.memory_outputs:
        raise UserError(
            f"--freeze {' '.join(recipe.freeze)} needs a model with memory, "
            f"but '{recipe.model}' has none: leave the flag out, or add "
            "memory with --memory-layers"
        )
