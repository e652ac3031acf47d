"""Fine-tunes a pretrained model on a GLUE task or SQuAD 1.1.

    python training/finetune.py --task sst2 --model runs/books --data GLUE

fine-tunes the best model of a pretraining run and prints its figures on the dev
sets, over some seeds, beside the paper's.
"""

import dataclasses
import json
import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tensorflow as tf
import tyro

from keras_pkm.runs.run_directory import RunDirectory
from keras_pkm.runs.user_error import UserError
from keras_pkm.runs.whole_files import write_whole
from training.commands.command_line import run_to_the_end
from training.commands.recipe_checks import check_at_least
from training.commands.recipe_checks import check_between_0_and_1
from training.commands.recipe_checks import check_from_0_to_1
from training.commands.recipe_checks import out_of_range
from training.commands.signals import Signals
from training.commands.strategy import create_strategy
from training.commands.strategy import default_precision
from training.finetuning.glue import GlueFinetuning
from training.finetuning.recipe import FinetuningRecipe
from training.finetuning.results import best_seed
from training.finetuning.results import format_results
from training.finetuning.results import summarize
from training.finetuning.seed import train_seed
from training.finetuning.squad import SquadFinetuning
from training.loading.pretrained_model import load_pretrained
from training.reports.paper import paper_figures
from training.tasks.bad_rows import BadRows


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(FinetuningRecipe, args=args)
    return run_to_the_end(
        finetune,
        recipe,
        args,
        script="training/finetune.py",
        name=recipe.task,
    )


def finetune(recipe: FinetuningRecipe, signals: Signals) -> dict:
    """Fine-tunes as the recipe says and returns the figures of all seeds.

    Raises:
        UserError: the recipe cannot be carried out; nothing is written then.
        RunError: something ended a run that had begun.
        Interrupted: a signal did.
    """
    if recipe.deterministic:
        tf.config.experimental.enable_op_determinism()
    # First of all: devices cannot be split once TensorFlow has used one.
    strategy = create_strategy(recipe.strategy, recipe.devices)
    pretrained = load_pretrained(recipe.model, recipe.added_memory())
    recipe = dataclasses.replace(
        recipe.with_defaults(pretrained.backbone.max_sequence_length),
        devices=strategy.num_replicas_in_sync,
        precision=recipe.precision or default_precision(recipe.strategy),
    )
    check_recipe(recipe, pretrained)
    run = RunDirectory(recipe.run_dir)
    run.check(recipe)
    bad_rows = BadRows(recipe.skip_bad_rows)
    kind = SquadFinetuning if recipe.is_squad else GlueFinetuning
    work = kind(recipe, pretrained, bad_rows)
    if bad_rows.rows:
        print(bad_rows.report())
    run.create(recipe)
    print(
        f"{run.root}: {recipe.task}, {len(work.train):,} rows to train on, "
        f"{recipe.devices} device(s), {recipe.precision}"
    )
    seeds = {}
    for seed in range(recipe.seed, recipe.seed + recipe.seeds):
        path = run.root / f"seed-{seed}" / "results.json"
        if not path.exists():
            figures = train_seed(
                recipe, pretrained, work, strategy, signals, seed, path.parent
            )
            write_whole(path, json.dumps(figures, indent=2) + "\n")
        else:
            figures = json.loads(path.read_text())
        seeds[seed] = figures
    results = {
        "task": recipe.task,
        "model": recipe.model,
        "family": pretrained.family.name,
        "from_scratch": recipe.from_scratch,
        "memory_layers": list(pretrained.backbone.memory_layers),
        "memory_block": pretrained.backbone.memory_block,
        "freeze": list(recipe.freeze),
        "classes": None if recipe.is_squad else list(recipe.glue.classes),
        "texts": 1 if recipe.is_squad else len(recipe.glue.columns),
        "best_model": f"seed-{best_seed(seeds, work.decides)}/best",
        "baseline": work.baseline,
        "seeds": seeds,
        "summary": summarize(seeds),
        "paper": paper_figures(
            recipe.task, pretrained.family.name, bool(recipe.freeze)
        ),
    }
    text = format_results(results)
    write_whole(run.root / "results.md", text + "\n")
    write_whole(run.results, json.dumps(results, indent=2) + "\n")
    print(f"\n{text}")
    return results


def check_recipe(recipe, pretrained):
    """Finds what is impossible before anything is written.

    Raises:
        UserError: a number is out of range, or the model lacks what a flag
            speaks of.
    """
    check_at_least(
        recipe,
        epochs=1,
        batch_size=1,
        seeds=1,
        checkpoint_every=1,
        max_skipped_steps=1,
        sequence_length=8,
        stride=1,
        answer_length=1,
        limit=1,
    )
    check_from_0_to_1(recipe, "dropout", "warmup_ratio", "weight_decay")
    check_between_0_and_1(recipe, "learning_rate", "memory_learning_rate")
    longest = pretrained.backbone.max_sequence_length
    if recipe.sequence_length > longest:
        raise out_of_range(
            recipe, "sequence_length", f"at most the model's {longest}"
        )
    if recipe.batch_size % recipe.devices:
        raise out_of_range(
            recipe, "batch_size", f"a multiple of the {recipe.devices} devices"
        )
    if recipe.memory_block and not recipe.memory_layers:
        raise UserError(
            "--memory-block needs the layers that get a memory: pass "
            "--memory-layers, such as 4 8"
        )
    if recipe.freeze and not pretrained.backbone.memory_outputs:
        raise UserError(
            f"--freeze {' '.join(recipe.freeze)} needs a model with memory, "
            f"but '{recipe.model}' has none: leave the flag out, or add "
            "memory with --memory-layers"
        )


if __name__ == "__main__":
    sys.exit(main())
