"""What a comparison's directory refuses, and who may write it."""

import dataclasses
import fcntl

import pytest

from keras_pkm.runs.user_error import UserError
from training import reproduce
from training.reproduction.comparison_directory import ComparisonDirectory
from training.reproduction.recipe import ReproductionRecipe


@pytest.fixture
def recipe(tmp_path):
    return ReproductionRecipe(tmp_path / "out")


def hold(recipe):
    with ComparisonDirectory(recipe.out).hold(recipe):
        pass


def test_the_same_comparison_goes_on(recipe):
    hold(recipe)
    hold(recipe)
    # More seeds can be asked for later, of other models, with more processes.
    hold(dataclasses.replace(recipe, seeds=3, repeat=("c",), processes=2))


def test_another_comparison_is_refused(recipe):
    hold(recipe)
    with pytest.raises(UserError, match="--steps was None, now 2"):
        hold(dataclasses.replace(recipe, steps=2))


def test_other_files_are_refused(recipe, capsys):
    recipe.out.mkdir()
    (recipe.out / "notes.txt").touch()
    assert reproduce.main(["--out", str(recipe.out)]) == 2
    assert "holds other files" in capsys.readouterr().err
    assert [path.name for path in recipe.out.iterdir()] == ["notes.txt"]


def test_only_one_process_writes(recipe):
    hold(recipe)
    with open(recipe.out / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="in use by another process"):
            hold(recipe)
    hold(recipe)
