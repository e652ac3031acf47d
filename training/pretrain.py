"""Pretrains a BERT with product-key memory on text.

    python training/pretrain.py --strategy mirrored

trains the laptop recipe on the documentation that comes with Python, first
without memory, then with it, and prints what the memory brought.
"""

import argparse
import logging
import sys

import keras
import tyro

from keras_pkm.models import PKMBertBackbone
from keras_pkm.models import PKMBertMaskedLM
from keras_pkm.models import copy_matching_weights
from training.check_recipe import check_recipe
from training.initial_model import InitialModel
from training.initial_model import load_initial_model
from training.initial_model import recipe_of_initial_model
from training.pretraining_data import PretrainingData
from training.pretraining_data import open_corpora
from training.recipes import RECIPES
from training.recipes import PretrainingRecipe
from training.report import format_results
from training.report import write_results
from training.run_directory import RunDirectory
from training.stage import compile_model
from training.stage import evaluate
from training.stage import train_stage
from training.strategy import create_strategy
from training.strategy import default_precision
from training.user_error import UserError
from training.vocabulary import load_vocabulary


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("keras_pkm").setLevel(logging.INFO)
    recipe = parse_recipe(args)
    try:
        pretrain(recipe)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def parse_recipe(args: list[str] | None = None) -> PretrainingRecipe:
    """Returns the named recipe with the changes that other flags make."""
    name = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    name.add_argument("--recipe", choices=RECIPES, default="laptop")
    known, _ = name.parse_known_args(args)
    return tyro.cli(PretrainingRecipe, args=args, default=RECIPES[known.recipe])


def pretrain(recipe: PretrainingRecipe) -> dict:
    """Trains as the recipe says, writes the run directory, returns figures.

    Raises:
        UserError: the recipe cannot be carried out; nothing is written then.
    """
    # First of all: devices cannot be split once TensorFlow has used one.
    strategy = create_strategy(recipe.strategy, recipe.devices)
    precision = recipe.precision or default_precision(recipe.strategy)
    initial = load_initial_model(recipe.init_from)
    recipe = recipe_of_initial_model(recipe, initial)
    check_recipe(recipe, strategy.num_replicas_in_sync)
    vocabulary = choose_vocabulary(recipe, initial)
    corpora = open_corpora(recipe)
    run = RunDirectory.of(recipe)
    run.check_free()

    print(
        f"{run.root}: recipe {recipe.recipe}, "
        f"{strategy.num_replicas_in_sync} device(s), {precision}"
    )
    run.create(recipe, vocabulary)
    data = PretrainingData.prepare(recipe, corpora, vocabulary, run)
    unigram = data.unigram_perplexity()
    print(
        f"{len(data.train):,} sequences to train on, {len(data.held_out):,} "
        f"held out, unigram perplexity {unigram:.2f}"
    )

    stages = []
    model = initial and initial.masked_lm
    if recipe.plain_steps:
        model = build_model(recipe, data, strategy, precision, "ffn", model)
        compile_model(model, recipe, recipe.plain_steps)
        print(f"Stage 1, plain: {recipe.plain_steps:,} steps")
        figures = train_stage(
            model,
            data,
            stage=0,
            steps=recipe.plain_steps,
            logs=run.logs / "plain",
            presets={"last": run.plain},
        )
        stages.append({"name": "plain", **figures})

    block = recipe.memory_block
    name = block
    if model is not None:
        name = "plain, continued" if block == "ffn" else f"+Init {block}"
    model = build_model(recipe, data, strategy, precision, block, model)
    compile_model(model, recipe, recipe.steps)
    print(f"Stage {len(stages) + 1}, {name}: {recipe.steps:,} steps")
    before = evaluate(model, data)
    if stages and block != "ffn":
        print(
            f"Held-out perplexity: {stages[0]['perplexity']:.2f} without "
            f"memory, {before:.2f} right after adding it ({block})"
        )
    figures = train_stage(
        model,
        data,
        stage=1,
        steps=recipe.steps,
        logs=run.logs / block,
        presets={"best": run.best, "last": run.last},
    )
    stages.append({"name": name, "perplexity_before": before, **figures})

    results = {
        "unigram_perplexity": unigram,
        "num_slots": recipe.num_sub_keys**2,
        "devices": strategy.num_replicas_in_sync,
        "precision": precision,
        "stages": stages,
    }
    write_results(results, run.root)
    print(f"\n{format_results(results)}\n\nThe model is in {run.last}.")
    return results


def choose_vocabulary(
    recipe: PretrainingRecipe, initial: InitialModel | None
) -> list[str] | None:
    """Returns the vocabulary to use, or None if one is to be trained.

    Raises:
        UserError: the vocabulary is not the initial model's.
    """
    if recipe.vocabulary is None:
        return initial and initial.vocabulary
    vocabulary = load_vocabulary(recipe.vocabulary)
    if initial and len(vocabulary) != initial.backbone.vocabulary_size:
        raise UserError(
            f"--vocabulary must have the model's "
            f"{initial.backbone.vocabulary_size:,} tokens, but "
            f"'{recipe.vocabulary}' has {len(vocabulary):,}: leave the flag "
            "out to use the model's own"
        )
    return vocabulary


def build_model(recipe, data, strategy, precision, block, start):
    """Builds a masked-LM model with a block, from the weights of `start`."""
    # The same first weights whatever was drawn before.
    keras.utils.set_random_seed(recipe.seed)
    with strategy.scope():
        model = PKMBertMaskedLM(
            PKMBertBackbone(
                vocabulary_size=data.tokenizer.vocabulary_size(),
                num_layers=recipe.num_layers,
                num_heads=recipe.num_heads,
                hidden_dim=recipe.hidden_dim,
                intermediate_dim=recipe.intermediate_dim,
                dropout=recipe.dropout,
                max_sequence_length=(
                    start.backbone.max_sequence_length
                    if start
                    else recipe.sequence_length
                ),
                memory_layers=recipe.memory_layers if block != "ffn" else (),
                memory_block=block,
                memory=recipe.memory_config(),
                dtype=precision,
            )
        )
        if start is not None:
            print(copy_matching_weights(start, model))
    return model


if __name__ == "__main__":
    sys.exit(main())
