"""Trains one stage of pretraining: a model, an optimizer, a fit."""

import dataclasses

import keras
import keras_hub
import tensorflow as tf

from keras_pkm.callbacks import MemoryUsageMonitor
from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.layers.value_table import first_values
from keras_pkm.trainers.freezing import freeze_pooler
from training.commands.signals import Signals
from training.fitting.logs import EpochLog
from training.fitting.logs import PerplexityLog
from training.fitting.logs import ShortProgress
from training.fitting.optimizer import make_optimizer
from training.fitting.resumable_fit import resumable_fit
from training.measuring.perplexity import Evaluation
from training.measuring.perplexity import LanguageModelEvaluator
from training.pretraining.data import PretrainingData
from training.pretraining.recipe import PretrainingRecipe
from training.pretraining.stage_callbacks import EvaluateHeldOut
from training.pretraining.stage_callbacks import SavePresets
from training.pretraining.stages import Stage
from training.runs.run_directory import RunDirectory
from training.runs.run_directory import StageLogs

# Number of points on the curve of the training perplexity.
_CURVE_POINTS = 200
# Memory usage is measured on one held-out batch for this number of train steps.
# It takes a third of the time of a train step, and so adds 1 %.
_MONITORED = 33


def build_model(
    recipe: PretrainingRecipe,
    data: PretrainingData,
    strategy: tf.distribute.Strategy,
    stage: Stage,
    start: keras_hub.models.Task | None,
) -> keras_hub.models.Task:
    """Builds a stage's model with initial weights, not those of `start`."""
    # Initial weights must not depend on earlier random numbers.
    keras.utils.set_random_seed(recipe.seed)
    memory = recipe.memory_config()
    if stage.has_fresh_weights:
        # Memories that are added to a trained model have values of zero.
        memory["values_initializer"] = first_values()
    inherited = {}
    if start is not None:
        # Settings that keras-hub's own backbones do not have as arguments.
        for name in data.family.inherited:
            if hasattr(start.backbone, name):
                inherited[name] = getattr(start.backbone, name)
    with strategy.scope():
        return data.family.make_task(
            {
                "vocabulary_size": data.tokenizer.vocabulary_size(),
                "num_layers": recipe.num_layers,
                "num_heads": recipe.num_heads,
                "hidden_dim": recipe.hidden_dim,
                "intermediate_dim": recipe.intermediate_dim,
                "dropout": recipe.dropout,
                "max_sequence_length": recipe.sequence_length,
                "dtype": recipe.precision,
                **inherited,
            },
            memory_layers=(
                recipe.memory_layers if stage.block != "ffn" else ()
            ),
            memory_block=stage.block,
            memory=memory,
        )


def compile_model(
    model: keras_hub.models.Task, recipe: PretrainingRecipe, steps: int
) -> None:
    """Compiles a model with a new optimizer and a schedule of `steps` steps."""
    with model.distribute_strategy.scope():
        optimizer = make_optimizer(
            learning_rate=recipe.learning_rate,
            memory_learning_rate=recipe.memory_learning_rate,
            memory_schedule=recipe.memory_schedule,
            steps=steps,
            warmup_ratio=recipe.warmup_ratio,
            weight_decay=recipe.weight_decay,
            clip_norm=recipe.clip_norm,
            reduction=recipe.reduction,
        )
        freeze_pooler(model.backbone)
        model.accumulation_steps = recipe.accumulate
        model.compile(
            optimizer,
            # Keras' own loss divides by all mask positions, even unused ones.
            weighted_metrics=[keras_hub.metrics.Perplexity(from_logits=True)],
            # Off in all stages, so that their speeds are comparable.
            jit_compile=False,
        )


def evaluate_held_out(
    evaluator: LanguageModelEvaluator, data: PretrainingData
) -> Evaluation:
    """Measures a model on the held-out text, with a progress bar."""
    evaluation = evaluator.evaluate(data.held_out_batches(), "Evaluation")
    return dataclasses.replace(evaluation, num_bytes=data.held_out_bytes)


def train_stage(
    model: keras_hub.models.Task,
    evaluator: LanguageModelEvaluator,
    data: PretrainingData,
    stage: Stage,
    *,
    checkpoint: TrainingCheckpoint,
    signals: Signals,
    run: RunDirectory,
    writes: bool = True,
) -> Evaluation:
    """Trains a compiled model to the end of a stage."""
    recipe = data.recipe
    logs = run.stage_logs(stage.label)
    held_out = EvaluateHeldOut(
        checkpoint,
        lambda: evaluate_held_out(evaluator, data),
        recipe.batch_size * recipe.accumulate * recipe.sequence_length,
    )
    # Each callback comes after those whose figures it writes.
    callbacks = []
    if model.backbone.memory_outputs:
        callbacks.append(_make_monitor(data, stage, logs, writes))
    callbacks.append(held_out)
    is_plain = stage.label == "plain"
    last, best = (run.plain, None) if is_plain else (run.last, run.best)
    if writes:
        callbacks += [
            SavePresets(checkpoint, data.preprocessor, last, best),
            EpochLog(logs.epochs),
            PerplexityLog(
                logs.perplexity,
                max(1, stage.steps // _CURVE_POINTS),
                lambda: checkpoint.step + 1,
            ),
            keras.callbacks.TensorBoard(
                str(logs.tensorboard), write_graph=False
            ),
        ]
    callbacks.append(ShortProgress())
    resumable_fit(
        model,
        lambda first_step, num_steps: data.training_batches(
            stage.number, first_step, num_steps
        ),
        steps=stage.steps,
        steps_per_epoch=stage.evaluate_every,
        checkpoint=checkpoint,
        signals=signals,
        callbacks=callbacks,
        max_skipped_steps=recipe.max_skipped_steps,
        prints=writes,
    )
    # A run that was killed after its last evaluation has to repeat it.
    return held_out.evaluation or evaluate_held_out(evaluator, data)


def _make_monitor(
    data: PretrainingData, stage: Stage, logs: StageLogs, writes: bool
) -> MemoryUsageMonitor:
    batches = max(1, stage.evaluate_every // _MONITORED)
    return MemoryUsageMonitor(
        data.held_out_batches().take(batches),
        csv_path=logs.memory if writes else None,
        tensorboard_dir=logs.memory_tensorboard if writes else None,
        counts_dir=logs.slots if writes else None,
    )
