import dataclasses
import pathlib

import pytest

from keras_pkm.runs.user_error import UserError
from training.commands.command_line import name_run_directory
from training.pretraining.recipe import RECIPES


def test_is_named_after_recipe_and_time():
    recipe = name_run_directory(RECIPES["laptop"], "laptop")
    root = pathlib.Path(recipe.run_dir)
    assert root.parent.name == "runs"
    assert root.name.startswith("laptop-")
    assert name_run_directory(recipe, "laptop") == recipe


def test_several_machines_need_a_name():
    recipe = dataclasses.replace(RECIPES["laptop"], strategy="multi_worker")
    with pytest.raises(UserError, match="--run-dir must be given"):
        name_run_directory(recipe, "laptop")
