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
    initial = load_initial_model(recipe.init_from)
    recipe = recipe_of_initial_model(recipe, initial)
    check_recipe(recipe)
    run = RunDirectory.of(recipe)
    run.check_free()
    corpora = open_corpora(recipe)
    vocabulary = initial and initial.vocabulary
    if recipe.vocabulary:
        vocabulary = load_vocabulary(recipe.vocabulary)
    if initial and len(vocabulary) != initial.backbone.vocabulary_size:
        raise UserError(
            f"--vocabulary must have the model's "
            f"{initial.backbone.vocabulary_size:,} tokens, but "
            f"'{recipe.vocabulary}' has {len(vocabulary):,}: leave the flag "
            "out to use the model's own"
        )
    strategy = create_strategy(recipe.strategy, recipe.devices)
    replicas = strategy.num_replicas_in_sync
    if recipe.batch_size % replicas:
        raise UserError(
            f"--batch-size must be a multiple of the {replicas} devices, "
            f"received {recipe.batch_size}: pass "
            f"{-(-recipe.batch_size // replicas) * replicas}"
        )
    precision = recipe.precision or default_precision(recipe.strategy)
    print(
        f"{run.root}: recipe {recipe.recipe}, {replicas} device(s), {precision}"
    )

    run.create(recipe, vocabulary)
    data = PretrainingData.prepare(recipe, corpora, vocabulary, run)
    results = {
        "unigram_perplexity": data.unigram_perplexity(),
        "num_slots": recipe.num_sub_keys**2,
        "devices": replicas,
        "precision": precision,
        "stages": [],
    }
    print(
        f"{len(data.train):,} sequences to train on, {len(data.held_out):,} "
        f"held out, unigram perplexity {results['unigram_perplexity']:.2f}"
    )

    model = initial and initial.masked_lm
    if recipe.plain_steps:
        model = build_model(recipe, data, strategy, precision, "ffn", model)
        compile_model(model, recipe, recipe.plain_steps)
        print(f"Stage 1, plain: {recipe.plain_steps:,} steps")
        results["stages"].append(
            train_stage(
                model,
                recipe,
                data,
                run,
                name="plain",
                stage=0,
                steps=recipe.plain_steps,
                presets={"last": run.plain},
            )
        )

    block = recipe.memory_block
    warm = model is not None
    model = build_model(recipe, data, strategy, precision, block, model)
    compile_model(model, recipe, recipe.steps)
    name = f"+Init {block}" if warm else block
    print(f"Stage {len(results['stages']) + 1}, {name}: {recipe.steps:,} steps")
    before = evaluate(model, data)
    if results["stages"]:
        plain = results["stages"][-1]["perplexity"]
        print(
            f"Held-out perplexity: {plain:.2f} without, {before:.2f} right "
            f"after adding {block}"
        )
    figures = train_stage(
        model,
        recipe,
        data,
        run,
        name=name,
        stage=1,
        steps=recipe.steps,
        presets={"best": run.best, "last": run.last},
    )
    results["stages"].append({**figures, "perplexity_before": before})
    write_results(results, run.root)
    print(f"\n{format_results(results)}\n\nThe model is in {run.last}.")
    return results


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
