"""What a kill leaves of a write, and that nobody's files are replaced."""

import pytest
import tensorflow as tf

from keras_pkm.files.any_file_system import write_whole_anywhere
from keras_pkm.files.whole_files import is_temporary
from keras_pkm.files.whole_files import new_directory
from keras_pkm.files.whole_files import remove_leftovers
from keras_pkm.files.whole_files import replacing_directory
from keras_pkm.files.whole_files import replacing_file
from keras_pkm.files.whole_files import write_whole


@pytest.mark.parametrize("write", [replacing_directory, new_directory])
def test_files_of_the_user_that_look_unfinished_stay(write, tmp_path):
    for name in ("keep.partial", "keep.replaced"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("mine")
    with write(tmp_path / "keep") as partial:
        (partial / "file").touch()
    remove_leftovers(tmp_path)
    assert sorted(
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")
    ) == [
        "keep.partial",
        "keep.partial/thesis.txt",
        "keep.replaced",
        "keep.replaced/thesis.txt",
    ]
    assert (tmp_path / "keep" / "file").exists()


def test_an_error_leaves_what_was_there(tmp_path):
    write_whole(tmp_path / "file", "old")
    with pytest.raises(KeyError):
        with replacing_file(tmp_path / "file") as partial:
            partial.write_text("half")
            raise KeyError
    with pytest.raises(KeyError):
        with replacing_directory(tmp_path / "new") as partial:
            (partial / "half").touch()
            raise KeyError
    assert (tmp_path / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_leftovers_of_a_kill(tmp_path):
    """A directory that was being replaced gets its name back."""
    names = (
        ".file.0123abcd.partial",
        "a/.best.0123abcd.partial/half",
        "a/.best.0123abcd.partial/.sums.0123abcd.partial",
        "a/.best.0123abcd.partial/.sums.0123abcd.replaced/x",
        "a/.best.4567cdef.replaced/old",
        "a/.last.4567cdef.replaced/old",
        "a/last/new",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert is_temporary(tmp_path / names[0])
    remove_leftovers(tmp_path)
    assert sorted(
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")
    ) == ["a", "a/best", "a/best/old", "a/last", "a/last/new"]


def test_anywhere(tmp_path):
    """What stands there with a similar name is not ours."""
    path = tmp_path / "sums.json"
    (tmp_path / "sums.json.partial").write_text("a user's")
    for text in ("old", "new"):
        write_whole_anywhere(str(path), text)
        assert path.read_text() == text
    path.unlink()
    path.mkdir()
    (path / "file").write_text("in the way")
    with pytest.raises(tf.errors.OpError):
        write_whole_anywhere(str(path), "text")
    assert {p.name for p in tmp_path.iterdir()} == {
        "sums.json",
        "sums.json.partial",
    }
    assert (tmp_path / "sums.json.partial").read_text() == "a user's"
