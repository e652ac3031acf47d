"""Pretrains a BERT, or its like, with product-key memory on text.

    python training/pretrain.py --strategy mirrored

trains the laptop recipe on the documentation that comes with Python, first
without memory, then with it, and prints what the memory brought.
"""

import argparse
import dataclasses
import pathlib
import shutil
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import keras
import keras_hub
import numpy as np
import tensorflow as tf
import tyro
from tqdm import tqdm

from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.models import copy_matching_weights
from keras_pkm.runs.run_directory import RunDirectory
from keras_pkm.runs.user_error import RunError
from keras_pkm.runs.user_error import UserError
from training.commands.command_line import run_to_the_end
from training.commands.signals import Signals
from training.commands.strategy import create_strategy
from training.commands.strategy import default_precision
from training.commands.strategy import is_chief
from training.commands.strategy import wait_for_all
from training.loading.families import family_named
from training.measuring.perplexity import evaluate_masked_lm
from training.pretraining.data import PretrainingData
from training.pretraining.data import plan_data
from training.pretraining.initial_model import InitialModel
from training.pretraining.initial_model import load_initial_model
from training.pretraining.initial_model import recipe_of_initial_model
from training.pretraining.recipe import RECIPES
from training.pretraining.recipe import PretrainingRecipe
from training.pretraining.recipe_check import check_recipe
from training.pretraining.results import format_results
from training.pretraining.results import write_results
from training.pretraining.stage import compile_model
from training.pretraining.stage import evaluate
from training.pretraining.stage import plan_stages
from training.pretraining.stage import train_stage


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = parse_recipe(args)
    return run_to_the_end(
        pretrain,
        recipe,
        args,
        script="training/pretrain.py",
        name=recipe.recipe,
    )


def parse_recipe(args: list[str] | None) -> PretrainingRecipe:
    """Returns the named recipe with the changes that other flags make."""
    name = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    name.add_argument("--recipe", choices=RECIPES, default="laptop")
    known, _ = name.parse_known_args(args)
    return tyro.cli(PretrainingRecipe, args=args, default=RECIPES[known.recipe])


def pretrain(recipe: PretrainingRecipe, signals: Signals) -> dict:
    """Trains as the recipe says, writes the run directory, returns figures.

    Raises:
        UserError: the recipe cannot be carried out; nothing is written then.
        RunError: something ended a run that had begun.
        Interrupted: a signal did.
    """
    if recipe.deterministic:
        tf.config.experimental.enable_op_determinism()
    # First of all: devices cannot be split once TensorFlow has used one.
    strategy = create_strategy(recipe.strategy, recipe.devices)
    initial = load_initial_model(recipe.init_from)
    recipe = recipe_of_initial_model(recipe, initial)
    recipe = dataclasses.replace(
        recipe,
        devices=strategy.num_replicas_in_sync,
        precision=recipe.precision or default_precision(recipe.strategy),
    )
    check_recipe(recipe, recipe.devices)
    run = RunDirectory(recipe.run_dir)
    try:
        if is_chief(strategy):
            prepare(recipe, run, initial)
        wait_for_all(strategy)
        data = PretrainingData.open(recipe, run)
        return train(recipe, run, data, strategy, initial, signals)
    except OSError as error:
        raise RunError(
            f"the run in '{run.root}' cannot go on: {error}"
        ) from error
    except tf.errors.OpError as error:
        if recipe.strategy != "multi_worker":
            raise
        raise RunError(
            "another worker does not answer any more "
            f"({error.message.splitlines()[0]}): start all of them again"
        ) from error


def prepare(recipe, run, initial):
    """Checks all that can be checked, then writes what training reads."""
    tokenizer = choose_tokenizer(recipe, initial)
    run.check(recipe)
    write_data = None if run.has_data else plan_data(recipe, tokenizer)
    print(
        f"{run.root}: recipe {recipe.recipe}, {recipe.devices} device(s), "
        f"{recipe.precision}"
    )
    run.create(recipe, ("data", "logs", "checkpoints"))
    if write_data is not None:
        write_data(run)


def train(recipe, run, data, strategy, initial, signals) -> dict:
    """Trains the stages that are not yet done, and writes the results."""
    unigram = data.unigram_perplexity()
    print(
        f"{len(data.train):,} sequences to train on, {len(data.held_out):,} "
        f"held out, unigram perplexity {unigram:.2f}"
    )
    stages = plan_stages(recipe)
    checkpoints = [
        TrainingCheckpoint(
            run.checkpoints / stage.label,
            every=recipe.checkpoint_every,
            keep=recipe.keep_checkpoints,
        )
        for stage in stages
    ]
    reached = max(
        (i for i, checkpoint in enumerate(checkpoints) if checkpoint.latest),
        default=0,
    )
    model = initial and initial.masked_lm
    finished = []
    for stage, checkpoint in list(zip(stages, checkpoints))[reached:]:
        start, model = model, build_model(recipe, data, strategy, stage, model)
        compile_model(model, recipe, stage.steps)
        if checkpoint.latest:
            checkpoint.restore(model)
            finished = checkpoint.state["finished"]
            print(
                f"Stage {len(finished) + 1}, {stage.name}, goes on after "
                f"{checkpoint.step:,} of {stage.steps:,} steps"
            )
        else:
            if start is not None:
                skip = recipe.skipped_weights()
                print(copy_matching_weights(start, model, skip))
            print(
                f"Stage {len(finished) + 1}, {stage.name}: {stage.steps:,} "
                "steps"
            )
            begin_stage(model, data, stage, checkpoint, finished)
        # What has been saved again is all that it takes to go on.
        if is_chief(strategy):
            for earlier in checkpoints[: checkpoints.index(checkpoint)]:
                shutil.rmtree(earlier.directory, ignore_errors=True)
        figures = train_stage(
            model,
            data,
            stage,
            checkpoint=checkpoint,
            signals=signals,
            run=run,
            writes=is_chief(strategy),
        )
        evaluation = evaluate_masked_lm(
            model,
            data.held_out_batches(),
            lambda batches: tqdm(batches, "Evaluation", disable=None),
        )
        finished = [
            *finished,
            {
                "name": stage.name,
                "perplexity_before": checkpoint.state["perplexity_before"],
                **figures,
                **figures_of(evaluation),
            },
        ]

    results = {
        "unigram_perplexity": unigram,
        "num_slots": recipe.num_sub_keys**2,
        "devices": recipe.devices,
        "precision": recipe.precision,
        "stages": finished,
    }
    if is_chief(strategy):
        np.savez(
            run.held_out_losses, nll=evaluation.nll, tokens=evaluation.tokens
        )
        write_results(results, run)
    print(f"\n{format_results(results)}\n\nThe model is in {run.last}.")
    return results


def figures_of(evaluation) -> dict:
    """Returns what the results keep of an evaluation, as JSON has it."""
    figures = {
        "perplexity": evaluation.perplexity,
        "standard_error": evaluation.standard_error,
        "predicted_tokens": int(evaluation.tokens.sum()),
    }
    if evaluation.memory_usage:
        figures["memory_usage"] = {
            str(layer): usage
            for layer, usage in evaluation.memory_usage.items()
        }
    return figures


def begin_stage(model, data, stage, checkpoint, finished):
    """Evaluates the model before a stage and writes its first checkpoint."""
    # Of a model that knows nothing it says nothing.
    before = None
    if stage.name != stage.block and stage.label != "plain":
        before = evaluate(model, data)
        if finished and stage.block != "ffn":
            print(
                "Held-out perplexity: "
                f"{finished[-1]['perplexity']:.2f} without memory, "
                f"{before:.2f} right after adding it ({stage.block})"
            )
    checkpoint.state = {"finished": finished, "perplexity_before": before}
    checkpoint.set_model(model)
    checkpoint.save()


def choose_tokenizer(
    recipe: PretrainingRecipe, initial: InitialModel | None
) -> keras_hub.tokenizers.Tokenizer | None:
    """Returns the tokenizer to use, or None if one is to be trained.

    Raises:
        UserError: its vocabulary is not the initial model's.
    """
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
    return tokenizer


def build_model(recipe, data, strategy, stage, start):
    """Builds a stage's model; its weights are fresh, not those of `start`."""
    # The same first weights whatever was drawn before.
    keras.utils.set_random_seed(recipe.seed)
    inherited = {}
    if start is not None:
        inherited["max_sequence_length"] = start.backbone.max_sequence_length
        # keras-hub's own backbones do not name theirs.
        if hasattr(start.backbone, "activation"):
            inherited["activation"] = start.backbone.activation
    with strategy.scope():
        return data.family.masked_lm(
            data.family.backbone(
                **{
                    "vocabulary_size": data.tokenizer.vocabulary_size(),
                    "num_layers": recipe.num_layers,
                    "num_heads": recipe.num_heads,
                    "hidden_dim": recipe.hidden_dim,
                    "intermediate_dim": recipe.intermediate_dim,
                    "dropout": recipe.dropout,
                    "max_sequence_length": recipe.sequence_length,
                    "memory_layers": (
                        recipe.memory_layers if stage.block != "ffn" else ()
                    ),
                    "memory_block": stage.block,
                    "memory": recipe.memory_config(),
                    "dtype": recipe.precision,
                    **inherited,
                }
            )
        )


if __name__ == "__main__":
    sys.exit(main())
