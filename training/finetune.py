#!/usr/bin/env python
"""Fine-tunes a pretrained model on a GLUE task or SQuAD 1.1.

    python training/finetune.py --task sst2 --model runs/books --glue GLUE

fine-tunes the last model of a pretraining run and prints its figures on the dev
sets, over some seeds, beside the paper's.
"""

import dataclasses
import pathlib
import sys
from typing import Any

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.quiet  # noqa: F401

import tyro

from training.commands.command_line import run_to_the_end
from training.commands.command_line import writing_to
from training.commands.signals import Signals
from training.commands.strategy import default_precision
from training.commands.strategy import prepare_devices
from training.finetuning.glue import GlueFinetuning
from training.finetuning.recipe import FinetuningRecipe
from training.finetuning.recipe import check_flags
from training.finetuning.recipe import check_recipe
from training.finetuning.results import format_results
from training.finetuning.results import make_results
from training.finetuning.seed import train_seeds
from training.finetuning.squad import SquadFinetuning
from training.loading.pretrained_model import load_pretrained
from training.reports.markdown import print_markdown
from training.runs.run_directory import RunDirectory
from training.tasks.bad_rows import BadRows


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(FinetuningRecipe, args=args)
    return run_to_the_end(
        finetune, recipe, args, script="training/finetune.py", name=recipe.task
    )


def finetune(recipe: FinetuningRecipe, signals: Signals) -> dict:
    """Fine-tunes a model by a recipe, and returns the figures of all seeds."""
    # This comes first: devices cannot be split once TensorFlow has used one.
    strategy = prepare_devices(recipe)
    pretrained = load_pretrained(recipe.model, recipe.added_memory())
    recipe = dataclasses.replace(
        recipe.with_defaults(pretrained.backbone.max_sequence_length),
        devices=strategy.num_replicas_in_sync,
        precision=recipe.precision or default_precision(recipe.strategy),
    )
    check_recipe(recipe, pretrained)
    run_dir: Any = recipe.out  # chosen by now
    run = RunDirectory(run_dir)
    if not run.is_run:
        check_flags(recipe)
    with writing_to(run, strategy):
        run.check(recipe)
        bad_rows = BadRows(recipe.skip_bad_rows)
        open_task = SquadFinetuning if recipe.is_squad else GlueFinetuning
        kind = open_task(recipe, pretrained, bad_rows)
        if bad_rows.rows:
            print(bad_rows.report())
        run.create(recipe)
        seeds = train_seeds(recipe, pretrained, kind, strategy, signals, run)
        results = make_results(recipe, pretrained, kind, run, seeds)
        table = format_results(results)
        run.write_results(results, table)
    print()
    print_markdown(table)
    print(f"\nThe model is in {run.root}: pass it to --model.")
    return results


if __name__ == "__main__":
    sys.exit(main())
