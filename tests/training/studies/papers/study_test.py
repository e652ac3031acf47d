"""What a comparison's directory refuses, and who may write it."""

import dataclasses

import pytest

from training import reproduce
from training.runs.user_error import UserError
from training.studies.papers.recipe import ReproductionRecipe
from training.studies.papers.study import PaperStudy


@pytest.fixture
def recipe(tmp_path):
    return ReproductionRecipe(out=tmp_path / "out")


def hold(recipe):
    study = PaperStudy(recipe)
    with study.hold():
        study.write_recipe()


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
    assert "contains other files" in capsys.readouterr().err
    assert [path.name for path in recipe.out.iterdir()] == ["notes.txt"]


def test_only_one_process_writes(recipe):
    with PaperStudy(recipe).hold():
        with pytest.raises(UserError, match="--out.*in use by.*it started"):
            hold(recipe)
    hold(recipe)


@pytest.mark.parametrize("missing", ["text", "out-of-domain", "glue"])
def test_inputs_are_read_before_anything_is_written(missing, recipe, capsys):
    """Fine-tuning begins hours after the command."""
    args = ["--out", str(recipe.out), f"--{missing}", "none.txt"]
    assert reproduce.main([*args, "--data-dir", "nowhere"]) == 2
    assert "none.txt" in capsys.readouterr().err
    assert not recipe.out.exists()


def test_no_tasks(recipe):
    recipe = dataclasses.replace(recipe, tasks=("none",))
    assert recipe.size.tasks == ()


def test_flags_of_tfds_go_to_the_commands_that_read_it(recipe):
    """The others would refuse them."""
    recipe = dataclasses.replace(
        recipe, data_dir="data", text="python-docs", tasks=("sst2",)
    )
    commands = {job.name: job.args for job in PaperStudy(recipe).jobs()}
    of_tfds = {name for name, args in commands.items() if "--data-dir" in args}
    assert of_tfds and all("sst2" in name for name in of_tfds)
