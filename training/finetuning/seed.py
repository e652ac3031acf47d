"""Fine-tunes once, with one seed."""

import pathlib
import sys

import keras

from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.models import copy_matching_weights
from keras_pkm.models import freeze_memory
from keras_pkm.optimizers import LinearWarmup
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from keras_pkm.runs.presets import save_preset
from keras_pkm.runs.whole_files import write_whole
from training.batches.labelled import training_batches
from training.fitting.skipped_steps import SkippedSteps
from training.pretraining.stage_callbacks import StopOnSignal


def train_seed(
    recipe, pretrained, work, strategy, signals, seed, directory: pathlib.Path
) -> dict:
    """Fine-tunes with one seed, or goes on with it.

    Args:
        recipe: `FinetuningRecipe`, with all defaults filled in.
        pretrained: `PretrainedModel`.
        work: `GlueFinetuning` or `SquadFinetuning`.
        strategy: `tf.distribute.Strategy`.
        signals: `Signals` that may end it before.
        seed: int.
        directory: of checkpoints, the best model and its answers.

    Returns:
        A dict with `"epochs"`, the figures after each, and `"best"`, the number
        of the best one, counted from 1.
    """
    steps_per_epoch = max(1, len(work.train) // recipe.batch_size)
    steps = recipe.epochs * steps_per_epoch
    keras.utils.set_random_seed(seed)
    with strategy.scope():
        task = work.build(copy_backbone(recipe, pretrained))
        work.compile(task, make_optimizer(recipe, task, steps))
    checkpoint = TrainingCheckpoint(
        directory / "checkpoints", every=recipe.checkpoint_every, keep=1
    )
    if checkpoint.latest:
        checkpoint.restore(task)
        print(
            f"Seed {seed} goes on after {checkpoint.step:,} of {steps:,} steps"
        )
    else:
        print(f"Seed {seed}: {steps:,} steps")
        checkpoint.state = {"epochs": [], "best": 0}
        checkpoint.set_model(task)
        checkpoint.save()
    callbacks = [
        SkippedSteps(
            checkpoint,
            None
            if recipe.precision == "mixed_float16"
            else recipe.max_skipped_steps,
        ),
        EvaluateDevSets(checkpoint, work, directory),
        checkpoint,
        StopOnSignal(checkpoint, signals),
    ]

    def fit(first_epoch, epochs, steps_per_epoch):
        task.fit(
            training_batches(
                work.train,
                batch_size=recipe.batch_size,
                seed=seed,
                first_step=checkpoint.step,
                num_steps=steps - checkpoint.step,
                group_by_length=recipe.group_by_length,
            ),
            initial_epoch=first_epoch,
            epochs=epochs,
            steps_per_epoch=steps_per_epoch,
            callbacks=callbacks,
            shuffle=False,
            verbose=1 if sys.stdout.isatty() else 2,
        )

    epoch, done = divmod(checkpoint.step, steps_per_epoch)
    with signals.wait_for_the_step():
        if done:
            fit(epoch, epoch + 1, steps_per_epoch - done)
            epoch += 1
        if checkpoint.step < steps:
            fit(epoch, recipe.epochs, steps_per_epoch)
    return dict(checkpoint.state)


def copy_backbone(recipe, pretrained):
    """Builds a backbone like the pretrained one, as the recipe has it."""
    backbone = pretrained.backbone
    config = {
        **backbone.get_config(),
        "dtype": recipe.precision,
        "dropout": recipe.dropout,
    }
    config.pop("name")
    copy = type(backbone).from_config(config)
    if not recipe.from_scratch:
        copy_matching_weights(backbone, copy)
    if recipe.freeze:
        freeze_memory(copy, recipe.freeze)
    return copy


def make_optimizer(recipe, task, steps):
    """Returns the optimizer, its rates over `steps` steps."""

    def schedule(peak):
        return LinearWarmup(peak, int(recipe.warmup_ratio * steps), steps)

    trains_values = (
        task.backbone.memory_outputs and "values" not in recipe.freeze
    )
    optimizer = PKMAdam(
        learning_rate=schedule(recipe.learning_rate),
        memory_learning_rate=schedule(recipe.memory_learning_rate),
        weight_decay=recipe.weight_decay or None,
        global_clipnorm=recipe.clip_norm,
        memory_pattern=r"(^|/)memory_values$" if trains_values else None,
    )
    if recipe.precision == "mixed_float16":
        optimizer = LossScaleOptimizer(optimizer)
    return optimizer


class EvaluateDevSets(keras.callbacks.Callback):
    """Evaluates after each epoch and keeps the best model.

    Args:
        checkpoint: `TrainingCheckpoint`, whose state gets the figures. It comes
            after this callback.
        work: `GlueFinetuning` or `SquadFinetuning`.
        directory: gets the best model, in `best/`, and its answers.
    """

    def __init__(self, checkpoint, work, directory):
        super().__init__()
        self.checkpoint = checkpoint
        self.work = work
        self.directory = directory

    def on_epoch_end(self, epoch, logs=None):
        found = self.work.evaluate(self.model)
        print(
            ", ".join(
                f"{name} {value:.4f}" for name, value in found.figures.items()
            )
        )
        state = self.checkpoint.state
        state["epochs"] = [*state["epochs"], found.figures]
        scores = [figures[self.work.decides] for figures in state["epochs"]]
        if scores[-1] > max(scores[:-1], default=float("-inf")):
            state["best"] = len(scores)
            save_preset(
                self.model, self.work.preprocessor, self.directory / "best"
            )
            for name, text in found.files.items():
                write_whole(self.directory / name, text)
