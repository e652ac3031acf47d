"""Checks a recipe against machine, model and data, and prepares its run."""

import dataclasses
from typing import Literal

import keras_hub
import tensorflow as tf

from training.commands.fields import out_of_range
from training.commands.strategy import default_precision
from training.loading.families import family_named
from training.loading.pretrained_model import LanguageModel
from training.pretraining.data import plan_data
from training.pretraining.data import tokens_by_id
from training.pretraining.initial_model import recipe_of_initial_model
from training.pretraining.recipe import PretrainingRecipe
from training.pretraining.recipe import check_flags
from training.pretraining.recipe import check_recipe
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError


def complete_recipe(
    recipe: PretrainingRecipe,
    strategy: tf.distribute.Strategy,
    initial: LanguageModel | None,
) -> PretrainingRecipe:
    """Returns the recipe with fields that depend on model and machine set."""
    recipe = recipe_of_initial_model(recipe, initial)
    objective = family_named(recipe.backbone).objective
    if recipe.objective not in (None, objective):
        raise out_of_range(
            recipe,
            "objective",
            f"{objective} with --backbone {recipe.backbone}",
        )
    normalization: Literal["layer", "batch"] = (
        "layer" if objective == "causal" else "batch"
    )
    recipe = dataclasses.replace(
        recipe,
        objective=objective,
        query_normalization=recipe.query_normalization or normalization,
        devices=strategy.num_replicas_in_sync,
        precision=recipe.precision or default_precision(recipe.strategy),
    )
    check_recipe(recipe, strategy.num_replicas_in_sync)
    return recipe


def prepare_run(
    recipe: PretrainingRecipe, run: RunDirectory, initial: LanguageModel | None
) -> None:
    """Checks everything that can be checked, then writes the training data."""
    if not run.is_run:
        check_flags(recipe)
    tokenizer = choose_tokenizer(recipe, initial)
    run.check(recipe)
    write_data = None if run.has_data else plan_data(recipe, tokenizer)
    print(
        f"{run.root}: recipe {recipe.recipe}, {recipe.devices} device(s), "
        f"{recipe.precision}"
    )
    is_new = not run.is_run
    run.create(recipe, (run.data, run.logs, run.checkpoints))
    if write_data is None:
        return
    try:
        write_data(run)
    except UserError:
        if is_new:
            run.clear()
        raise


def choose_tokenizer(
    recipe: PretrainingRecipe, initial: LanguageModel | None
) -> keras_hub.tokenizers.Tokenizer | None:
    """Returns the tokenizer to use, or None if one will be trained."""
    if recipe.vocabulary is None:
        return initial and initial.tokenizer
    tokenizer = family_named(recipe.backbone).load_tokenizer(recipe.vocabulary)
    size = tokenizer.vocabulary_size()
    if initial and size != initial.backbone.vocabulary_size:
        raise UserError(
            f"--vocabulary must have the model's "
            f"{initial.backbone.vocabulary_size:,} tokens, but "
            f"'{recipe.vocabulary}' has {size:,}: leave the flag out to use "
            "the model's own"
        )
    if initial and tokens_by_id(tokenizer) != tokens_by_id(initial.tokenizer):
        raise UserError(
            "--vocabulary must have the model's tokens in the model's order, "
            f"but '{recipe.vocabulary}' has others: leave the flag out to use "
            "the model's own"
        )
    return tokenizer
