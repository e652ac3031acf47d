"""The model that `--init-from` names."""

import dataclasses

import keras

from keras_pkm.layers import ProductKeyMemory
from keras_pkm.layers.memories import memories
from training.commands.fields import check_unused
from training.commands.fields import out_of_range
from training.loading.pretrained_model import LanguageModel
from training.loading.pretrained_model import load_language_model
from training.pretraining.recipe import RECIPES
from training.pretraining.recipe import PretrainingRecipe
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError

_SIZES = ("num_layers", "num_heads", "hidden_dim", "intermediate_dim")


def load_initial_model(path: str | None, seed: int) -> LanguageModel | None:
    """Loads a run's last model, a preset, or a directory of transformers."""
    if path is None:
        return None
    run = RunDirectory(path)
    has_last = run.last.exists() or run.results.exists()
    if run.is_pretraining_run and not has_last:
        raise UserError(
            f"--init-from must be a run that has reached its last stage, but "
            f"'{path}' has not: resume it, or pass '{run.plain}'"
        )
    # A head that it lacks is drawn.
    keras.utils.set_random_seed(seed)
    return load_language_model(path, "--init-from", fresh_head=True)


def recipe_of_initial_model(
    recipe: PretrainingRecipe, initial: LanguageModel | None
) -> PretrainingRecipe:
    """Returns the recipe with the sizes of the initial model.

    If the model has memory, its sizes are taken over, too. There is no plain
    stage then: the initial model replaces it. Flags that ask for something else
    are refused, unless they are the recipe's defaults.
    """
    if initial is None:
        return recipe
    backbone = initial.backbone
    longest = backbone.max_sequence_length
    if recipe.sequence_length > longest:
        raise out_of_range(
            recipe, "sequence_length", f"at most the model's {longest}"
        )
    decided = {name: getattr(backbone, name) for name in _SIZES}
    decided["backbone"] = initial.family.name
    if getattr(backbone, "memory_outputs", None):
        block = backbone.memory_block
        first = memories(backbone)[backbone.memory_layers[0]]
        if not isinstance(first, ProductKeyMemory):
            raise UserError(
                "--init-from must have memories of the class ProductKeyMemory, "
                f"received {type(first).__name__}: train others by their own "
                "script"
            )
        if backbone.share_table:
            raise UserError(
                "--init-from must have memories with a table each, received "
                "memories that share one: train it by its own script"
            )
        memory = first.get_config()
        _check_memory(memory)
        if recipe.fresh_feed_forward:
            raise UserError(
                "--fresh-feed-forward draws networks beside a new memory, but "
                f"'{recipe.init_from}' has its memory already: leave it out"
            )
        is_causal = initial.family.objective == "causal"
        if is_causal and memory["query_normalization"] == "batch":
            raise UserError(
                "--init-from must be a causal model whose queries are not "
                "normalized by batch, which would tell each token of later "
                "ones, received one whose queries are: train another one"
            )
        decided.update(
            memory_layers=tuple(backbone.memory_layers),
            # Of causal models, --memory-block resm is a memory behind a block.
            memory_block=(
                "resm" if initial.family.objective == "causal" else block
            ),
            num_sub_keys=memory["num_sub_keys"],
            memory_heads=memory["num_heads"],
            memory_top_k=memory["top_k"],
            memory_key_dim=memory["key_dim"],
            memory_value_dim=memory["value_dim"],
            query_normalization=memory["query_normalization"] or "none",
        )
    decided["plain_steps"] = 0
    default = RECIPES[recipe.recipe]
    for name, value in decided.items():
        given = getattr(recipe, name)
        if name == "memory_layers":
            given = tuple(sorted(given))
        if given not in (value, getattr(default, name)):
            reason = f"--init-from sets it to {value}"
            check_unused(recipe, (name,), reason, default)
    return dataclasses.replace(recipe, **decided)


def _check_memory(config: dict) -> None:
    """Checks that a memory has no settings that the flags cannot name."""
    plain = ProductKeyMemory(num_sub_keys=1, top_k=1).get_config()
    for name in ("query_hidden_dims", "gate", "key_dropout", "head_dropout"):
        if config[name] != plain[name]:
            raise UserError(
                f"--init-from must have memories with {name} {plain[name]}, "
                f"received {config[name]}: train others by their own script"
            )
