"""A trained model, the material to teach, and the material to keep."""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import keras

from keras_pkm.files.array_files import read_arrays
from keras_pkm.files.array_files import write_arrays
from keras_pkm.teaching.slot_importance import SlotImportance
from training.facts.fact_batches import training_batches
from training.facts.fact_range import FactRange
from training.facts.random_facts import RandomFacts
from training.loading.pretrained_model import load_language_model
from training.measuring.memory_reads import count_background
from training.measuring.perplexity import LanguageModelEvaluator
from training.runs.user_error import UserError
from training.studies.forgetting.candidates import CANDIDATES
from training.studies.forgetting.recipe import ForgettingRecipe
from training.studies.recall.models import build_model
from training.studies.recall.models import compile_model
from training.studies.recall.recipe import RecallRecipe
from training.teaching.background import check_background
from training.teaching.background import find_importance
from training.teaching.material import FactMaterial
from training.teaching.material import Material
from training.teaching.material import open_material
from training.teaching.methods import check_memory
from training.teaching.recipe import TeachingRecipe

# The learning rates that `training/recall.py` has by default.
_RATES = (2e-3, 3e-2)


@dataclasses.dataclass(frozen=True)
class Setting:
    """A trained model, the material to teach, and the material to keep."""

    # Function that returns the trained model.
    load: Callable[[], keras.Model]
    # The material to teach.
    new: Material
    # The material to keep.
    old: Material
    # Function that returns the importance of its slots. It reads some of the
    # training text, so only methods that need it call it.
    measure_importance: Callable[[], SlotImportance]
    # Number of old examples that are replayed in a batch.
    batch_size: int


def learn_facts(recipe: ForgettingRecipe, seed: int) -> dict:
    """Trains a model on the old facts, and writes it."""
    facts, sizes = _facts(recipe, seed)[0], _sizes(recipe)
    steps = -(-recipe.epochs * facts.num_facts // sizes.batch_size)
    model = _build(recipe, seed)
    compile_model(model, sizes, "resm", steps=steps, rates=_RATES)
    batches = training_batches(
        facts,
        batch_size=sizes.batch_size,
        seed=seed,
        first_step=0,
        num_steps=steps,
    )
    model.fit(batches, shuffle=False, verbose=0)
    material = FactMaterial(facts, recipe.group_size, recipe.group_size)
    known = material.ask(LanguageModelEvaluator(model)).exact
    if not known.any():
        raise UserError(
            f"--epochs must be so many that the model learns some of the "
            f"{facts.num_facts:,} old facts, received {recipe.epochs}, after "
            "which it knows none: pass more"
        )
    background = material.samples(recipe.group_size, seed)
    importance = count_background(model, background)
    importance_file, weights_file = _files(recipe, seed)
    weights_file.parent.mkdir(exist_ok=True)
    importance.save(importance_file)
    # Not with Keras, which would add the optimizer's moments.
    weights = {str(n): each for n, each in enumerate(model.get_weights())}
    write_arrays(weights_file, weights)
    return {"seed": seed, "steps": steps, "known": float(known.mean())}


@contextlib.contextmanager
def open_setting(recipe: ForgettingRecipe, seed: int) -> Iterator[Setting]:
    """Yields the model and the materials of a seed."""
    name = recipe.model
    if name is None:
        yield _random_facts(recipe, seed)
        return
    model = load_language_model(name)
    check_memory(model.task, "values")
    flags = TeachingRecipe(
        model=name,
        out=recipe.out,
        text=recipe.text,
        keep=recipe.keep,
        fall=recipe.fall,
        batch_size=recipe.batch_size,
        seed=seed,
    )
    measure_importance = functools.partial(
        find_importance,
        name,
        model,
        background=recipe.background,
        data_dir=None,
        batch_size=recipe.batch_size,
    )
    new: Material
    old: Any  # there is some: the recipe has been checked
    with open_material(flags, model) as (new, old):
        yield Setting(
            lambda: load_language_model(name)[0],
            new,
            old,
            measure_importance,
            recipe.batch_size,
        )


def check_setting(recipe: ForgettingRecipe) -> None:
    """Checks that the recipe's model and materials can be used."""
    if recipe.model is None:
        _facts(recipe, 0)
        return
    with open_setting(recipe, 0):
        if any(CANDIDATES[key].method == "slots" for key in recipe.methods):
            check_background(recipe.model, recipe.background)


def _random_facts(recipe: ForgettingRecipe, seed: int) -> Setting:
    old, new = _facts(recipe, seed)
    importance_file, weights_file = _files(recipe, seed)
    weights = read_arrays(weights_file)

    def load() -> keras.Model:
        model = _build(recipe, seed)
        model.set_weights([weights[str(n)] for n in range(len(weights))])
        return model

    return Setting(
        load,
        FactMaterial(new, recipe.group_size, recipe.group_size),
        FactMaterial(old, recipe.group_size, recipe.group_size),
        lambda: SlotImportance.load(importance_file),
        recipe.group_size,
    )


def _files(recipe: ForgettingRecipe, seed: int) -> list[pathlib.Path]:
    """How often a seed's slots are read, and the weights of its model."""
    bases = recipe.out / "bases"
    return [
        bases / f"seed-{seed}-{what}.npz" for what in ("importance", "weights")
    ]


def _facts(recipe: ForgettingRecipe, seed: int) -> tuple[FactRange, FactRange]:
    """The old facts and the new ones."""
    old, new = recipe.old_facts, recipe.new_facts
    facts = RandomFacts(num_facts=old + new, seed=seed)
    return FactRange(facts, 0, old), FactRange(facts, old, new)


def _sizes(recipe: ForgettingRecipe) -> RecallRecipe:
    # The sizes of the models that `training/recall.py` compares.
    return RecallRecipe(out=recipe.out)


def _build(recipe: ForgettingRecipe, seed: int) -> keras.Model:
    facts = _facts(recipe, seed)[0]
    return build_model(_sizes(recipe), facts, "resm", seed=seed)
