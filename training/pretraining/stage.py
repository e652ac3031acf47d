"""One stage of pretraining: a schedule, an optimizer, a fit."""

import csv
import dataclasses
import io
import pathlib
import sys

import keras
import keras_hub

from keras_pkm.callbacks import MemoryUsageMonitor
from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.callbacks.slot_counts import drop_slot_counts
from keras_pkm.optimizers import LinearWarmup
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from keras_pkm.runs.run_directory import RunDirectory
from keras_pkm.runs.run_directory import write_whole
from keras_pkm.trainers.freezing import freeze_pooler
from training.commands.signals import Signals
from training.fitting.perplexity_log import PerplexityLog
from training.fitting.skipped_steps import SkippedSteps
from training.pretraining.data import PretrainingData
from training.pretraining.recipe import PretrainingRecipe
from training.pretraining.stage_callbacks import KeepFigures
from training.pretraining.stage_callbacks import SavePresets
from training.pretraining.stage_callbacks import StopOnSignal

# Of a curve of the training perplexity.
_CURVE_POINTS = 200


@dataclasses.dataclass(frozen=True)
class Stage:
    """What a stage trains.

    Args:
        number: int. Its place in the run: each has its own order and masks.
        label: str. Of its files.
        name: str. For tables.
        block: str. Of the layers with memory, `"ffn"` for a plain model.
        steps: int.
    """

    number: int
    label: str
    name: str
    block: str
    steps: int


def plan_stages(recipe: PretrainingRecipe) -> list[Stage]:
    """Returns the stages of a run: one, or two with `--plain-steps`."""
    block = recipe.memory_block
    stages = []
    if recipe.plain_steps:
        stages.append(Stage(0, "plain", "plain", "ffn", recipe.plain_steps))
    if not (stages or recipe.init_from):
        return [Stage(0, block, block, block, recipe.steps)]
    name = "plain, continued" if block == "ffn" else f"+Init {block}"
    return [*stages, Stage(1, block, name, block, recipe.steps)]


def compile_model(model, recipe: PretrainingRecipe, steps: int):
    """Gives the model a fresh optimizer, and a schedule of `steps` steps."""
    has_memory = bool(model.backbone.memory_outputs)

    def schedule(peak):
        return LinearWarmup(peak, int(recipe.warmup_ratio * steps), steps)

    with model.distribute_strategy.scope():
        optimizer = PKMAdam(
            learning_rate=schedule(recipe.learning_rate),
            memory_learning_rate=(
                schedule(recipe.memory_learning_rate)
                if recipe.memory_schedule == "linear"
                else recipe.memory_learning_rate
            ),
            weight_decay=recipe.weight_decay or None,
            global_clipnorm=recipe.clip_norm,
            memory_pattern=r"(^|/)memory_values$" if has_memory else None,
            reduction=recipe.reduction,
        )
        if model.dtype_policy.name == "mixed_float16":
            optimizer = LossScaleOptimizer(optimizer)
        freeze_pooler(model.backbone)
        model.accumulation_steps = recipe.accumulate
        model.compile(
            optimizer,
            # Keras' own loss divides by all mask positions, empty ones, too.
            weighted_metrics=[keras_hub.metrics.Perplexity(from_logits=True)],
            # Off in all stages, so that their speeds compare.
            jit_compile=False,
        )


def evaluate(model, data: PretrainingData) -> float:
    """Returns the held-out perplexity of a compiled model."""
    logs = model.evaluate(data.held_out_batches(), return_dict=True, verbose=0)
    return logs["perplexity"]


def train_stage(
    model,
    data: PretrainingData,
    stage: Stage,
    *,
    checkpoint: TrainingCheckpoint,
    signals: Signals,
    run: RunDirectory,
    writes: bool = True,
) -> dict:
    """Trains a compiled model to the end of a stage and returns its figures.

    Args:
        model: compiled masked-LM task.
        data: `PretrainingData`.
        stage: `Stage`.
        checkpoint: where the stage stands; `checkpoint.step` steps are done.
        signals: `Signals` that may end it before, after a step.
        run: the directory of presets and logs.
        writes: bool. Whether this process writes them.

    Raises:
        Interrupted: a signal has come; a checkpoint is written.
        RunError: steps are skipped one after the other.
    """
    recipe = data.recipe
    every = recipe.evaluate_every or default_evaluate_every(stage.steps)
    held_out = data.held_out_batches()
    logs = run.logs / stage.label
    csv_path = logs.with_suffix(".csv")
    memory_csv_path = logs.with_name(f"{stage.label}-memory.csv")
    perplexity_path = logs.with_name(f"{stage.label}-perplexity.csv")
    counts_dir = logs.with_name(f"{stage.label}-slots")
    if writes:
        drop_rows(csv_path, "epoch", checkpoint.step // every)
        drop_rows(perplexity_path, "step", checkpoint.step + 1)
        # The monitor counts as the optimizer does, without skipped steps.
        applied = int(model.optimizer.iterations.numpy())
        drop_rows(memory_csv_path, "step", applied + 1)
        drop_slot_counts(counts_dir, applied)

    monitor = None
    if model.backbone.memory_outputs:
        # A train step takes as long as three that only read: they add 1 %,
        # beside what is written. A stage's results are of all batches.
        monitor = MemoryUsageMonitor(
            held_out.take(max(1, every // 33)),
            csv_path=memory_csv_path if writes else None,
            tensorboard_dir=logs / "memory" if writes else None,
            counts_dir=counts_dir if writes else None,
        )
    skipping_is_usual = model.dtype_policy.name == "mixed_float16"
    callbacks = [
        SkippedSteps(
            checkpoint, None if skipping_is_usual else recipe.max_skipped_steps
        ),
        *([monitor] if monitor else []),
        KeepFigures(checkpoint, recipe),
    ]
    last, best = run.last, run.best
    if stage.label == "plain":
        last, best = run.plain, None
    csv_logger = keras.callbacks.CSVLogger(str(csv_path), append=True)
    if writes:
        callbacks += [
            SavePresets(checkpoint, data.preprocessor, last, best),
            csv_logger,
            PerplexityLog(
                perplexity_path,
                max(1, stage.steps // _CURVE_POINTS),
                lambda: checkpoint.step + 1,
            ),
            keras.callbacks.TensorBoard(str(logs), write_graph=False),
        ]
    callbacks += [checkpoint, StopOnSignal(checkpoint, signals)]

    def fit(first_epoch, epochs, steps_per_epoch):
        model.fit(
            data.training_batches(
                stage.number, checkpoint.step, stage.steps - checkpoint.step
            ),
            initial_epoch=first_epoch,
            epochs=epochs,
            steps_per_epoch=steps_per_epoch,
            validation_data=held_out,
            callbacks=callbacks,
            shuffle=False,
            verbose=_verbosity() if writes else 0,
        )

    epoch, done = divmod(checkpoint.step, every)
    with signals.wait_for_the_step():
        try:
            if done:
                fit(epoch, epoch + 1, every - done)
                epoch += 1
            if checkpoint.step < stage.steps:
                fit(epoch, stage.steps // every, every)
        finally:
            csv_logger.on_train_end()  # closes the file
    return checkpoint.state["figures"]


def _verbosity():
    """Bars that redraw themselves are for terminals."""
    return 1 if sys.stdout.isatty() else 2


def drop_rows(path: pathlib.Path, column: str, limit: int):
    """Drops the rows of a CSV file from `limit` on: they come once more."""
    if not path.exists():
        return
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = [row for row in reader if int(row[column]) < limit]
        names = reader.fieldnames or []
    if not rows:
        path.unlink()
        return
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names)
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def default_evaluate_every(steps: int) -> int:
    """Returns the steps between at most five evenly spaced evaluations."""
    evaluations = next(n for n in (5, 4, 3, 2, 1) if steps % n == 0)
    return steps // evaluations
