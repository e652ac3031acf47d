"""Checks a recipe before anything is written."""

from keras_pkm.layers import ProductKeyMemory
from keras_pkm.layers.memory_layers import check_memory_layers
from training.commands.fields import check_fields
from training.commands.fields import out_of_range
from training.pretraining.recipe import PretrainingRecipe
from training.runs.user_error import UserError


def check_recipe(recipe: PretrainingRecipe, replicas: int = 1) -> None:
    """Checks the numbers of a recipe."""
    check_fields(recipe)
    if recipe.hidden_dim % recipe.num_heads:
        rule = f"a divisor of --hidden-dim, {recipe.hidden_dim}"
        raise out_of_range(recipe, "num_heads", rule)
    if recipe.objective == "causal" and recipe.memory_block not in (
        "resm",
        "ffn",
    ):
        raise out_of_range(
            recipe, "memory_block", f"resm or ffn with {recipe.backbone}"
        )
    if recipe.memory_block != "ffn":
        try:
            ProductKeyMemory(**recipe.memory_config())
            check_memory_layers(recipe.memory_layers, recipe.num_layers)
        except ValueError as error:
            raise UserError(f"the memory cannot be built: {error}") from error
        if not recipe.memory_layers:
            raise UserError(
                "--memory-layers must name a layer, received none: pass "
                "--memory-block ffn for a model without memory"
            )
    if recipe.batch_size % replicas:
        raise out_of_range(
            recipe, "batch_size", f"a multiple of the {replicas} devices"
        )
    every = recipe.evaluate_every
    if every is not None:
        stages = [s for s in (recipe.plain_steps, recipe.steps) if s]
        if every < 1 or any(steps % every for steps in stages):
            raise out_of_range(
                recipe,
                "evaluate_every",
                f"a divisor of {' and '.join(map(str, stages))}, the steps of "
                "each stage",
            )
