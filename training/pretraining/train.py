"""Trains the stages of a pretraining run and writes its results."""

import logging
import math
import shutil
from typing import Any

import keras_hub
import tensorflow as tf

from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.files.array_files import write_arrays
from keras_pkm.models import copy_matching_weights
from training.commands.signals import Signals
from training.commands.strategy import is_chief
from training.measuring.memory_reads import count_background
from training.measuring.perplexity import LanguageModelEvaluator
from training.pretraining.data import PretrainingData
from training.pretraining.recipe import PretrainingRecipe
from training.pretraining.results import format_results
from training.pretraining.stage import build_model
from training.pretraining.stage import compile_model
from training.pretraining.stage import evaluate_held_out
from training.pretraining.stage import train_stage
from training.pretraining.stage_callbacks import StageProgress
from training.pretraining.stages import Stage
from training.pretraining.stages import plan_stages
from training.reports.markdown import print_markdown
from training.runs.run_directory import RunDirectory
from training.runs.user_error import RunError

_log = logging.getLogger(__name__)
# The share of unknown tokens above which a warning is logged.
_MANY_UNKNOWN = 0.1


def train(
    recipe: PretrainingRecipe,
    run: RunDirectory,
    data: PretrainingData,
    strategy: tf.distribute.Strategy,
    start: keras_hub.models.Task | None,
    signals: Signals,
) -> dict:
    """Trains the stages that are not yet done, and writes the results."""
    unigram = data.unigram_perplexity()
    unknown = data.unknown_share()
    print(
        f"{len(data.train):,} sequences to train on, {len(data.held_out):,} "
        f"held out, {unknown:.1%} of the tokens unknown, unigram perplexity "
        f"{unigram:.2f}"
    )
    warn_of_unknown_tokens(unknown)
    stages = plan_stages(recipe)
    checkpoints = [_open_checkpoint(recipe, run, stage) for stage in stages]
    model: Any = start
    finished: list[dict] = []
    reached = _reached_stage(run, checkpoints)
    for stage, checkpoint in list(zip(stages, checkpoints))[reached:]:
        start, model = model, build_model(recipe, data, strategy, stage, model)
        compile_model(model, recipe, stage.steps)
        evaluator = LanguageModelEvaluator(model)
        if checkpoint.latest:
            checkpoint.restore(model)
            finished = checkpoint.state.finished
            print(
                f"Stage {len(finished) + 1}, {stage.name}, resumes after "
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
            _begin_stage(model, evaluator, data, stage, checkpoint, finished)
        # The new checkpoint suffices to resume; earlier stages' are deleted.
        if is_chief(strategy):
            for earlier in checkpoints[: checkpoints.index(checkpoint)]:
                shutil.rmtree(earlier.directory, ignore_errors=True)
        evaluation = train_stage(
            model,
            evaluator,
            data,
            stage,
            checkpoint=checkpoint,
            signals=signals,
            run=run,
            writes=is_chief(strategy),
        )
        progress = checkpoint.state
        finished = [
            *finished,
            {
                "name": stage.name,
                "perplexity_before": progress.perplexity_before,
                **progress.figures,
                **evaluation.figures(),
            },
        ]

    results = {
        "unigram_perplexity": unigram,
        "unknown_tokens": unknown,
        "num_slots": recipe.num_sub_keys**2,
        "devices": recipe.devices,
        "precision": recipe.precision,
        "stages": finished,
    }
    table = format_results(results)
    importance = None
    if model.backbone.memory_outputs:
        # On all workers: each of them counts a part.
        last = stages[-1]
        importance = count_background(
            model, data.training_batches(last.number, 0, last.steps)
        )
    if is_chief(strategy):
        write_arrays(
            run.held_out_losses,
            {"nll": evaluation.nll, "tokens": evaluation.tokens},
        )
        if importance is not None:
            importance.save(run.document_frequencies)
        run.write_results(results, table)
    print()
    print_markdown(table)
    print(f"\nThe model is in {run.root}: pass it to --model.")
    lowest = checkpoint.state.lowest
    # The last one may be NaN.
    if math.isfinite(lowest) and not lowest >= evaluation.perplexity:
        print(
            f"An earlier one had a lower held-out perplexity, {lowest:.2f}: it "
            f"is in {run.best}."
        )
    return results


def warn_of_unknown_tokens(share: float) -> None:
    """Logs a warning if a large share of the tokens is unknown."""
    if share > _MANY_UNKNOWN:
        _log.warning(
            "%.0f %% of the training text's tokens are unknown to the "
            "vocabulary: train one on this text, or pass another --vocabulary",
            100 * share,
        )


def _reached_stage(
    run: RunDirectory, checkpoints: list[TrainingCheckpoint]
) -> int:
    """Returns the index of the last stage that has begun."""
    begun = [i for i, each in enumerate(checkpoints) if each.latest]
    # Logs exist only if there was a checkpoint.
    if not begun and run.has_logs:
        raise RunError(
            f"the run in '{run.root}' has logs, but none of its checkpoints "
            f"is left in '{run.checkpoints}': put back a copy of them, or "
            "start over with another --out"
        )
    return max(begun, default=0)


def _open_checkpoint(
    recipe: PretrainingRecipe, run: RunDirectory, stage: Stage
) -> TrainingCheckpoint:
    return TrainingCheckpoint(
        run.stage_checkpoints(stage.label),
        every=recipe.checkpoint_every,
        keep=recipe.keep_checkpoints,
        state=StageProgress(),
    )


def _begin_stage(
    model: keras_hub.models.Task,
    evaluator: LanguageModelEvaluator,
    data: PretrainingData,
    stage: Stage,
    checkpoint: TrainingCheckpoint,
    finished: list[dict],
) -> None:
    """Evaluates the model before a stage and writes its first checkpoint."""
    # The perplexity of an untrained model is not informative.
    before = None
    if not stage.has_fresh_weights:
        before = evaluate_held_out(evaluator, data).perplexity
        if finished and stage.block != "ffn":
            print(
                "Held-out perplexity: "
                f"{finished[-1]['perplexity']:.2f} without memory, "
                f"{before:.2f} right after adding it ({stage.block})"
            )
    checkpoint.state = StageProgress(
        finished=finished, perplexity_before=before
    )
    checkpoint.set_model(model)
    checkpoint.save()
