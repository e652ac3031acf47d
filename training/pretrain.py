#!/usr/bin/env python
"""Pretrains a language model with product-key memory on text.

    python training/pretrain.py --strategy mirrored

trains the laptop recipe on the documentation that comes with Python, first
without memory and then with it, and prints the difference that it makes.
"""

import pathlib
import sys
from typing import Any

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.quiet  # noqa: F401

from training.commands.command_line import run_to_the_end
from training.commands.command_line import writing_to
from training.commands.signals import Signals
from training.commands.strategy import is_chief
from training.commands.strategy import prepare_devices
from training.commands.strategy import wait_for_all
from training.pretraining.data import PretrainingData
from training.pretraining.initial_model import load_initial_model
from training.pretraining.prepare import complete_recipe
from training.pretraining.prepare import prepare_run
from training.pretraining.recipe import PretrainingRecipe
from training.pretraining.recipe import parse_recipe
from training.pretraining.train import train
from training.runs.run_directory import RunDirectory


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


def pretrain(recipe: PretrainingRecipe, signals: Signals) -> dict:
    """Trains by a recipe, writes the run directory, and returns the figures."""
    # This comes first: devices cannot be split once TensorFlow has used one.
    strategy = prepare_devices(recipe)
    initial = load_initial_model(recipe.init_from, recipe.seed)
    recipe = complete_recipe(recipe, strategy, initial)
    run_dir: Any = recipe.out  # chosen by now
    run = RunDirectory(run_dir)
    with writing_to(run, strategy):
        if is_chief(strategy):
            prepare_run(recipe, run, initial)
        wait_for_all(strategy)
        data = PretrainingData.open(recipe, run)
        start = initial and initial.task
        return train(recipe, run, data, strategy, start, signals)


if __name__ == "__main__":
    sys.exit(main())
