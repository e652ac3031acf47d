"""Fine-tunes once, with one seed."""

import dataclasses
from typing import Any

import keras
import keras_hub
import tensorflow as tf

from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.files.checksums import record_checksums
from keras_pkm.files.presets import save_preset
from keras_pkm.files.whole_files import write_whole
from keras_pkm.layers.value_table import first_values
from keras_pkm.models import copy_matching_weights
from keras_pkm.models import freeze_memory
from training.batches.labelled import training_batches
from training.commands.signals import Signals
from training.finetuning.kind import FinetuningKind
from training.finetuning.recipe import FinetuningRecipe
from training.fitting.optimizer import make_optimizer
from training.fitting.resumable_fit import Progress
from training.fitting.resumable_fit import resumable_fit
from training.loading.pretrained_model import PretrainedModel
from training.runs.files import read_json
from training.runs.files import write_json
from training.runs.run_directory import RunDirectory
from training.runs.run_directory import SeedDirectory
from training.runs.user_error import RunError


@dataclasses.dataclass
class SeedProgress(Progress):
    """The figures of a seed so far; only `EvaluateDevSets` changes them."""

    # The figures after each epoch.
    epochs: list[dict] = dataclasses.field(default_factory=list)
    # The number of the best epoch, counted from 1.
    best: int = 0


def train_seed(
    recipe: FinetuningRecipe,
    pretrained: PretrainedModel,
    kind: FinetuningKind,
    strategy: tf.distribute.Strategy,
    signals: Signals,
    seed: int,
    directory: SeedDirectory,
) -> dict:
    """Fine-tunes with one seed, or resumes it."""
    # An epoch may end a part of a batch before or behind its last row.
    steps_per_epoch = max(1, round(len(kind.train) / recipe.batch_size))
    # Nothing is unset by now.
    complete: Any = recipe
    steps = complete.epochs * steps_per_epoch
    keras.utils.set_random_seed(seed)
    with strategy.scope():
        task = kind.build(copy_backbone(recipe, pretrained))
        optimizer = make_optimizer(
            learning_rate=complete.learning_rate,
            memory_learning_rate=complete.memory_learning_rate,
            memory_schedule="linear",
            steps=steps,
            warmup_ratio=recipe.warmup_ratio,
            weight_decay=recipe.weight_decay,
            clip_norm=recipe.clip_norm,
        )
        kind.compile(task, optimizer)
    checkpoint = TrainingCheckpoint(
        directory.checkpoints,
        every=recipe.checkpoint_every,
        state=SeedProgress(),
    )
    if checkpoint.latest:
        checkpoint.restore(task)
        print(
            f"Seed {seed} resumes after {checkpoint.step:,} of {steps:,} steps"
        )
    elif directory.best.exists():
        raise RunError(
            f"the run in '{directory.root}' has a best model, but none of its "
            f"checkpoints is left in '{directory.checkpoints}': put back a "
            "copy of them, or start over with another --out"
        )
    else:
        print(f"Seed {seed}: {steps:,} steps")
        checkpoint.set_model(task)
        checkpoint.save()
    resumable_fit(
        task,
        lambda first_step, num_steps: training_batches(
            kind.train,
            batch_size=recipe.batch_size,
            seed=seed,
            first_step=first_step,
            num_steps=num_steps,
            group_by_length=recipe.group_by_length,
        ),
        steps=steps,
        steps_per_epoch=steps_per_epoch,
        checkpoint=checkpoint,
        signals=signals,
        callbacks=[EvaluateDevSets(checkpoint, kind, directory)],
        max_skipped_steps=recipe.max_skipped_steps,
    )
    return dataclasses.asdict(checkpoint.state)


def copy_backbone(
    recipe: FinetuningRecipe, pretrained: PretrainedModel
) -> keras_hub.models.Backbone:
    """Builds a copy of the pretrained backbone with the recipe's settings."""
    backbone = pretrained.backbone
    config = {**backbone.get_config(), "dtype": recipe.precision}
    config.pop("name")
    plain = config["backbone"]
    config["backbone"] = {
        **plain,
        "config": {**plain["config"], "dropout": recipe.dropout},
    }
    memory = config.get("memory")
    if recipe.from_scratch and memory is not None:
        # The values of an added memory are zero at first.
        config["memory"] = _with_drawn_values(memory)
    copy = type(backbone).from_config(config)
    if not recipe.from_scratch:
        # A new memory is drawn with the seed.
        copy_matching_weights(backbone, copy, skip=pretrained.new_weights)
    if recipe.freeze:
        freeze_memory(copy, recipe.freeze)
    return copy


def _with_drawn_values(memory: dict) -> dict:
    """The config of a memory, or its arguments, with values to begin with."""
    arguments = dict(memory["config"] if "class_name" in memory else memory)
    if arguments.get("values_initializer") is None:
        arguments["values_initializer"] = first_values()
    if "class_name" in memory:
        return {**memory, "config": arguments}
    return arguments


class EvaluateDevSets(keras.callbacks.Callback):
    """Evaluates after each epoch and saves the best model."""

    def __init__(
        self,
        checkpoint: TrainingCheckpoint,
        kind: FinetuningKind,
        directory: SeedDirectory,
    ):
        super().__init__()
        self.checkpoint = checkpoint
        self.kind = kind
        self.directory = directory

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        found = self.kind.evaluate(self.model)
        print(
            ", ".join(
                f"{name} {value:.4f}" for name, value in found.figures.items()
            )
        )
        progress = self.checkpoint.state
        progress.epochs.append(found.figures)
        scores = [figures[self.kind.decides] for figures in progress.epochs]
        if scores[-1] > max(scores[:-1], default=float("-inf")):
            progress.best = len(scores)
            save_preset(self.model, self.kind.preprocessor, self.directory.best)
            for name, text in found.files.items():
                write_whole(self.directory.root / name, text)


def train_seeds(
    recipe: FinetuningRecipe,
    pretrained: PretrainedModel,
    kind: FinetuningKind,
    strategy: tf.distribute.Strategy,
    signals: Signals,
    run: RunDirectory,
) -> dict[int, dict]:
    """Fine-tunes with all seeds of a recipe that are not yet done."""
    print(
        f"{run.root}: {recipe.task}, {len(kind.train):,} rows to train on, "
        f"{recipe.devices} device(s), {recipe.precision}"
    )
    seeds = {}
    for seed in range(recipe.seed, recipe.seed + recipe.seeds):
        directory = run.seed(seed)
        if directory.results.exists():
            seeds[seed] = read_json(directory.results, "--out")
            continue
        seeds[seed] = train_seed(
            recipe, pretrained, kind, strategy, signals, seed, directory
        )
        write_json(directory.results, seeds[seed])
        record_checksums(run.root, [directory.results])
    return seeds
