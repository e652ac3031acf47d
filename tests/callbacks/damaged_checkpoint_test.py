"""Checkpoints that a disk or a hand has damaged, at the end or halfway."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.callbacks import TrainingCheckpoint


@pytest.fixture
def model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def files_in(directory):
    return sorted(path.name for path in directory.iterdir())


def saved_steps(model, directory, steps=(10, 15)):
    """Saves checkpoints whose weights are the number of the step."""
    checkpoint = TrainingCheckpoint(directory)
    checkpoint.set_model(model)
    for step in steps:
        model.set_weights([np.full_like(w, step) for w in model.get_weights()])
        checkpoint.step = step
        checkpoint.save()
    return checkpoint


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


INJURIES = {
    "index missing": ("index", lambda path: path.unlink()),
    "index flipped": ("index", flip),
    "index empty": ("index", lambda path: path.write_bytes(b"")),
    "data missing": ("data-00000-of-00001", lambda path: path.unlink()),
    "data flipped": ("data-00000-of-00001", flip),
    "data cut": (
        "data-00000-of-00001",
        lambda path: path.write_bytes(path.read_bytes()[:-4]),
    ),
    "data zeroed": (
        "data-00000-of-00001",
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
    ),
    "checksums garbled": ("checksums.json", lambda path: path.write_text("[]")),
    "checksums cut": ("checksums.json", lambda path: path.write_text("{")),
}


@pytest.mark.parametrize("injury", INJURIES)
def test_a_damaged_checkpoint_is_skipped(injury, model, tmp_path, caplog):
    part, damage = INJURIES[injury]
    saved_steps(model, tmp_path)
    damage(tmp_path / f"step-15.{part}")
    checkpoint = TrainingCheckpoint(tmp_path)
    assert checkpoint.restore(model) == 10
    assert np.all(model.get_weights()[0] == 10)
    assert f"step 15 (step-15.{part} " in caplog.text
    assert "resumes from step 10" in caplog.text
    # Nothing is deleted before a newer one is there.
    assert (tmp_path / "step-10.index").exists()
    checkpoint.step = 12
    checkpoint.save()
    assert checkpoint._files.steps() == [12, 10]

    damage(tmp_path / f"step-12.{part}")
    damage(tmp_path / f"step-10.{part}")
    before = files_in(tmp_path)
    with pytest.raises(OSError, match="no checkpoint.*12.*10.*Put back a copy"):
        TrainingCheckpoint(tmp_path).restore(model)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("injury", INJURIES)
def test_checkpoints_of_an_earlier_version(injury, model, tmp_path, caplog):
    """These have no checksums of their own, and a file `checkpoint`."""
    part, damage = INJURIES[injury]
    saved_steps(model, tmp_path)
    for path in tmp_path.glob("*.json"):
        path.unlink()
    (tmp_path / "checkpoint").write_text("garbled")
    assert TrainingCheckpoint(tmp_path).restore(model) == 15
    if part == "checksums.json":
        return
    damage(tmp_path / f"step-15.{part}")
    assert TrainingCheckpoint(tmp_path).restore(model) == 10
    # Without its index, it looks like one that was being written.
    assert injury == "index missing" or "step 15 (" in caplog.text


def test_what_cannot_be_read_back_is_not_a_checkpoint(
    model, tmp_path, monkeypatch
):
    saved_steps(model, tmp_path)
    checkpoint = TrainingCheckpoint(tmp_path, keep=1)
    assert checkpoint.restore(model) == 15
    write = tf.train.Checkpoint.write

    def damaged_write(self, prefix):
        write(self, prefix)
        flip(tmp_path / "step-16.data-00000-of-00001")

    monkeypatch.setattr(tf.train.Checkpoint, "write", damaged_write)
    checkpoint.step = 16
    with pytest.raises(OSError, match="step 16 could not.*read back"):
        checkpoint.save()
    assert {"step-15.index", "step-10.index"} < set(files_in(tmp_path))
    assert TrainingCheckpoint(tmp_path).restore(model) == 15
