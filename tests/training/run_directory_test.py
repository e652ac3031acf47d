import pathlib

import pytest

from training.recipes import RECIPES
from training.run_directory import RunDirectory
from training.run_directory import save_preset
from training.user_error import UserError


class Task:
    """Writes what it is given, then perhaps fails."""

    preprocessor = None

    def __init__(self, text, fails=False):
        self.text = text
        self.fails = fails

    def save_to_preset(self, path):

        folder = pathlib.Path(path)
        folder.mkdir()
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


def test_names_itself_after_recipe_and_time():
    run = RunDirectory.of(RECIPES["laptop"])
    assert run.root.parent.name == "runs"
    assert run.root.name.startswith("laptop-")


def test_check_free(tmp_path):
    RunDirectory(tmp_path / "new").check_free()
    RunDirectory(tmp_path).check_free()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="holds other files"):
        RunDirectory(tmp_path).check_free()
    (tmp_path / "recipe.json").write_text("{}")
    with pytest.raises(UserError, match="holds another run"):
        RunDirectory(tmp_path).check_free()
    with pytest.raises(UserError, match="--run-dir must be a directory"):
        RunDirectory(tmp_path / "notes.txt").check_free()


def test_create_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--run-dir"):
        RunDirectory(tmp_path / "file" / "run").create(RECIPES["laptop"], None)
