"""Ranges stand on the fields of recipes."""

import dataclasses
import typing

import pytest

from training.analysis.recipe import AnalysisRecipe
from training.commands.fields import check_fields
from training.evaluation.recipe import EvaluationRecipe
from training.finetuning.recipe import FinetuningRecipe
from training.pretraining.recipe import RECIPES
from training.pretraining.recipe import PretrainingRecipe
from training.runs.user_error import UserError
from training.studies.edits.recipe import EditsRecipe
from training.studies.forgetting.recipe import ForgettingRecipe
from training.studies.papers.recipe import ReproductionRecipe
from training.studies.recall.recipe import RecallRecipe
from training.teaching.recipe import TeachingRecipe

KINDS = [
    AnalysisRecipe,
    EditsRecipe,
    EvaluationRecipe,
    FinetuningRecipe,
    ForgettingRecipe,
    PretrainingRecipe,
    RecallRecipe,
    ReproductionRecipe,
    TeachingRecipe,
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_has_a_range(kind):
    hints = typing.get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        hint, parts = hints[field.name], ()
        if not hasattr(hint, "__metadata__"):
            parts = typing.get_args(hint) or (hint,)
        # Layers are checked with the model's number of layers.
        is_open = {int, float} & {*parts} and field.name != "memory_layers"
        assert not is_open, field.name


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("steps", 0, "at least 1, received 0"),
        ("steps", 2**31, "at most 2147483647"),
        ("seed", -1, "at least 0"),
        ("dropout", 1.0, "below 1"),
        ("mask_rate", 0.0, "above 0"),
        ("clip_norm", float("nan"), "a finite number"),
        ("clip_norm", 1e300, "below 1e.38"),
        ("query_dropout", float("inf"), "a finite number"),
        ("vocabulary_size", 5, "at least 6"),
        ("strategy", "magic", "'default', 'mirrored' or 'multi_worker'"),
        ("memory_layers", ("one",), "a valid integer"),
    ],
)
def test_what_is_out_of_range(name, value, rule):
    recipe = dataclasses.replace(RECIPES["laptop"], **{name: value})
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(UserError, match=f"{flag} must be {rule}"):
        check_fields(recipe)


def test_lists_have_each_once(tmp_path):
    for values in ((), (0.1, 0.1)):
        recipe = RecallRecipe(out=tmp_path, learning_rates=values)
        with pytest.raises(UserError, match="--learning-rates must be at leas"):
            recipe.check()
