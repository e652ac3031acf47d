import dataclasses
import pathlib

import pytest
import tensorflow as tf

from training.commands.command_line import name_run_directory
from training.commands.command_line import print_errors
from training.commands.command_line import writing_to
from training.pretraining.recipe import RECIPES
from training.runs.run_directory import RunDirectory
from training.runs.user_error import RunError
from training.runs.user_error import UserError


def test_is_named_after_recipe_and_time():
    recipe = name_run_directory(RECIPES["laptop"], "laptop")
    root = pathlib.Path(recipe.out)
    assert root.parent.name == "runs"
    assert root.name.startswith("laptop-")
    assert name_run_directory(recipe, "laptop") == recipe


def test_several_machines_need_a_name():
    recipe = dataclasses.replace(RECIPES["laptop"], strategy="multi_worker")
    with pytest.raises(UserError, match="--out must be given"):
        name_run_directory(recipe, "laptop")


TOO_MUCH = "cannot allocate 12.5 GiB"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("cannot allocate 12.5 GiB"),
        tf.errors.ResourceExhaustedError(
            None, None, "cannot allocate 12.5 GiB"
        ),
    ],
)
def test_too_little_memory(error, tmp_path, capsys):
    def fail(*_):
        raise error

    assert print_errors(fail) == 1
    assert f"({TOO_MUCH}). A lower" in capsys.readouterr().err
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(RunError, match="12.5 GiB.*--batch-size"):
        with writing_to(run, tf.distribute.get_strategy()):
            fail()
