"""Fine-tunes with one seed after another."""

import tensorflow as tf

from keras_pkm.files.checksums import record_checksums
from training.commands.signals import Signals
from training.finetuning.kind import FinetuningKind
from training.finetuning.recipe import FinetuningRecipe
from training.finetuning.seed import train_seed
from training.loading.pretrained_model import PretrainedModel
from training.runs.files import read_json
from training.runs.files import write_json
from training.runs.run_directory import RunDirectory


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
