import dataclasses
import json
import pathlib

import pytest

from keras_pkm.files.presets import save_preset
from training.pretraining.recipe import RECIPES
from training.runs.files import write_json
from training.runs.run_directory import RunDirectory
from training.runs.run_directory import find_preset
from training.runs.user_error import UserError


class Task:
    """Writes what it is given, then perhaps fails."""

    preprocessor = None

    def __init__(self, text, fails=False):
        self.text = text
        self.fails = fails

    def save_to_preset(self, path):
        folder = pathlib.Path(path)
        (folder / "config.json").write_text(f"{self.text} {self.preprocessor}")
        if self.fails:
            raise OSError("No space left on device")


def test_save_preset_replaces_the_old_one_as_a_whole(tmp_path):
    path = tmp_path / "last"
    task = Task("first")
    save_preset(task, "preprocessor", path)
    assert task.preprocessor is None
    save_preset(Task("second"), "preprocessor", path)
    assert (path / "config.json").read_text() == "second preprocessor"
    with pytest.raises(OSError, match="No space"):
        save_preset(Task("third", fails=True), "preprocessor", path)
    assert (path / "config.json").read_text() == "second preprocessor"
    save_preset(Task("fourth"), "preprocessor", path)
    assert (path / "config.json").read_text() == "fourth preprocessor"
    assert [folder.name for folder in tmp_path.iterdir()] == ["last"]


def test_check(tmp_path):
    recipe = RECIPES["laptop"]
    RunDirectory(tmp_path / "new").check(recipe)
    RunDirectory(tmp_path).check(recipe)
    # What a kill at the very beginning leaves.
    (tmp_path / ".recipe.json.0123abcd.partial").write_text("{")
    RunDirectory(tmp_path).check(recipe)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="contains other files"):
        RunDirectory(tmp_path).check(recipe)
    with pytest.raises(UserError, match="--out must be a directory"):
        RunDirectory(tmp_path / "notes.txt").check(recipe)


def test_check_of_a_directory_that_holds_a_run(tmp_path):
    recipe = RECIPES["laptop"]
    run = RunDirectory(tmp_path / "run")
    run.create(recipe)
    run.check(dataclasses.replace(recipe, out="elsewhere"))
    other = dataclasses.replace(recipe, seed=3, memory_layers=(2,))
    with pytest.raises(UserError) as error:
        run.check(other)
    assert "--seed was 0, now 3" in str(error.value)
    assert "--memory-layers was [1, 2], now [2]" in str(error.value)
    assert "--steps" not in str(error.value)
    # A run of a version that had no such flag goes on with its default.
    (run.root / "checksums.json").unlink()
    stored = json.loads(run.recipe.read_text())
    del stored["accumulate"]
    run.recipe.write_text(json.dumps(stored))
    run.check(recipe)
    with pytest.raises(UserError, match="--accumulate was 1, now 2"):
        run.check(dataclasses.replace(recipe, accumulate=2))
    with pytest.raises(UserError, match="--resume would continue"):
        run.check(dataclasses.replace(recipe, resume=False))
    run.results.write_text("{}")
    with pytest.raises(UserError, match="contains a finished run"):
        run.check(recipe)
    run.results.unlink()
    run.recipe.write_text("{")
    with pytest.raises(UserError, match="recipe.json that is a JSON object"):
        run.check(recipe)


def test_create_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--out"):
        RunDirectory(tmp_path / "file" / "run").create(RECIPES["laptop"], None)


def test_the_model_of_a_run(tmp_path):
    run = RunDirectory(tmp_path)
    assert not run.is_run
    run.recipe.write_text('{"plain_steps": 0}')
    assert run.is_pretraining_run
    with pytest.raises(UserError, match="none in last or best or plain yet"):
        run.find_model()
    # A run that has not ended may have a plain model only.
    for model in (run.plain, run.best, run.last):
        model.mkdir()
        (model / "config.json").write_text("{}")
        assert run.find_model() == model
    assert find_preset(str(tmp_path)) == str(run.last)
    assert find_preset("bert_tiny_en_uncased") == "bert_tiny_en_uncased"

    run.recipe.write_text('{"task": "sst2"}')
    assert not run.is_pretraining_run
    with pytest.raises(UserError, match="--init-from must be a fine-tuning"):
        run.find_model("--init-from")
    best = run.seed(3).best
    best.mkdir(parents=True)
    (best / "config.json").write_text("{}")
    run.results.write_text(f'{{"best_model": "{run.name_of(best)}"}}')
    assert run.find_model() == best


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        ({"corpus": "a.txt", "run_dir": "runs/a"}, {"text": "a.txt"}),
        ({"task": "squad", "data": "here"}, {"squad": "here"}),
        ({"task": "cola", "data": "here"}, {"glue": "here"}),
    ],
)
def test_recipes_of_older_runs_have_the_names_of_today(tmp_path, stored, found):
    run = RunDirectory(tmp_path)
    write_json(run.recipe, stored)
    recipe = run.read_recipe()
    assert recipe.items() >= found.items()
    assert not {"corpus", "run_dir", "data"} & set(recipe)
