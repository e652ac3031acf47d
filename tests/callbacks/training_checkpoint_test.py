"""Training that goes on exactly, wherever it stopped."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.optimizers import LinearWarmup
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from tests.models.tiny import half_precision_batch
from tests.models.tiny import half_precision_task


class Stop(Exception):
    pass


class StopAfter(keras.callbacks.Callback):
    """Stands for a kill after a step of the training."""

    def __init__(self, checkpoint, step):
        super().__init__()
        self.checkpoint = checkpoint
        self.step = step

    def on_train_batch_end(self, batch, logs=None):
        if self.checkpoint.step == self.step:
            raise Stop


def dataset(eager, first, last):
    rngs = map(np.random.default_rng, range(first, last))
    batches = [half_precision_batch(eager, rng) for rng in rngs]
    stacked = tf.nest.map_structure(lambda *x: np.stack(x), *batches)
    return tf.data.Dataset.from_tensor_slices(stacked)


def new_task(strategy, eager):
    """With dropout, loss scaling, memory and a schedule of the step."""
    with strategy.scope():
        task = half_precision_task(eager, dropout=0.3)
        task.compile(
            LossScaleOptimizer(PKMAdam(LinearWarmup(0.1, 2, 9))),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=False,
            run_eagerly=eager,
        )
    return task


def train(task, checkpoint, epoch_steps, callbacks=()):
    """Trains to the end of the second epoch."""
    steps = 2 * epoch_steps
    epoch, done = divmod(checkpoint.step, epoch_steps)
    for first, last, length in (
        (epoch, epoch + 1, epoch_steps - done),
        (epoch + 1, 2, epoch_steps),
    ):
        if checkpoint.step < steps:
            task.fit(
                dataset(task.run_eagerly, checkpoint.step, steps),
                initial_epoch=first,
                epochs=last,
                steps_per_epoch=length,
                shuffle=False,
                verbose=0,
                callbacks=[checkpoint, *callbacks],
            )


def state(task):
    return [np.array(v) for v in [*task.variables, *task.optimizer.variables]]


@pytest.mark.parametrize(
    "eager, devices, epoch_steps, every, stops",
    [
        (True, 1, 3, 2, [3, 5]),
        pytest.param(False, 2, 2, 1, [1], marks=pytest.mark.slow),
    ],
)
def test_goes_on_exactly(
    eager, devices, epoch_steps, every, stops, mirrored, tmp_path
):
    strategy = mirrored if devices == 2 else tf.distribute.get_strategy()
    keras.utils.set_random_seed(5)
    whole = new_task(strategy, eager)
    start = whole.get_weights()
    train(whole, TrainingCheckpoint(tmp_path / "whole"), epoch_steps)
    assert all(
        not np.array_equal(old, new)
        for old, new in zip(start, whole.get_weights())
        if old.shape == (121, 16)
    )

    kept = 0
    for stop in [*stops, None]:
        keras.utils.set_random_seed(99)
        task = new_task(strategy, eager)
        checkpoint = TrainingCheckpoint(tmp_path / "parts", every=every)
        step = checkpoint.restore(task)
        assert step == kept
        if step == 0:
            keras.utils.set_random_seed(5)
            task = new_task(strategy, eager)
            task.set_weights(start)
            checkpoint.set_model(task)
        if stop is None:
            train(task, checkpoint, epoch_steps)
        else:
            with pytest.raises(Stop):
                train(
                    task,
                    checkpoint,
                    epoch_steps,
                    [StopAfter(checkpoint, stop)],
                )
            kept = every * (stop // every)
    assert checkpoint.step == 2 * epoch_steps
    for old, new in zip(whole.variables, task.variables):
        np.testing.assert_array_equal(old, new, err_msg=old.path)
    for old, new in zip(state(whole), state(task)):
        np.testing.assert_array_equal(old, new)


@pytest.fixture
def model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def test_keeps_the_newest(model, tmp_path):
    checkpoint = TrainingCheckpoint(tmp_path, every=1, keep=3)
    assert checkpoint.restore(model) == 0 and checkpoint.latest is None
    checkpoint.state["note"] = {"a": [1, 2.5, None]}
    x = np.ones((10, 2))
    model.fit(x, x[:, 0], batch_size=2, verbose=0, callbacks=[checkpoint])
    assert sorted(path.name for path in tmp_path.glob("*.index")) == [
        "step-3.index",
        "step-4.index",
        "step-5.index",
    ]
    again = TrainingCheckpoint(tmp_path)
    assert again.restore(model) == 5
    assert again.state == {"note": {"a": [1, 2.5, None]}}


def test_other_files_in_the_directory(model, tmp_path):
    """Slot counts are numbered by step, too."""
    counts = [tmp_path / f"step-{step}.npz" for step in range(1, 6)]
    for path in counts:
        path.write_bytes(b"counts")
    checkpoint = TrainingCheckpoint(tmp_path, every=1, keep=2)
    checkpoint.restore(model)
    x = np.ones((10, 2))
    model.fit(x, x[:, 0], batch_size=2, verbose=0, callbacks=[checkpoint])
    assert all(path.exists() for path in counts)
    # They are no part of the checkpoint.
    counts[-1].unlink()
    assert TrainingCheckpoint(tmp_path).restore(model) == 5


@pytest.mark.parametrize(
    "batches, every, saved",
    [(12, 4, [4, 8, 12]), (12, 3, [4, 8, 12]), (8, 6, [8]), (4, 2, [4])],
)
def test_several_steps_in_one_execution(batches, every, saved, model, tmp_path):
    model.compile("sgd", "mse", steps_per_execution=4)
    checkpoint = TrainingCheckpoint(tmp_path, every=every, keep=99)
    x = np.ones((2 * batches, 2))
    model.fit(x, x[:, 0], batch_size=2, verbose=0, callbacks=[checkpoint])
    assert checkpoint.step == batches == model.optimizer.iterations
    steps = {int(p.stem.split("-")[1]) for p in tmp_path.glob("*.index")}
    assert sorted(steps) == saved


@pytest.mark.parametrize("steps_per_epoch", [6, None])
def test_steps_that_cannot_be_counted(steps_per_epoch, model, tmp_path):
    model.compile("sgd", "mse", steps_per_execution=4)
    x = np.ones((2, 2))
    data = tf.data.Dataset.from_tensors((x, x[:, 0]))
    data = data.repeat(None if steps_per_epoch else 6).filter(lambda x, y: True)
    with pytest.raises(ValueError, match="`steps_per_execution` above 1"):
        model.fit(
            data,
            steps_per_epoch=steps_per_epoch,
            shuffle=False,
            verbose=0,
            callbacks=[TrainingCheckpoint(tmp_path)],
        )


@dataclasses.dataclass(slots=True)
class Slotted:
    note: str = ""
    count: int = dataclasses.field(default=0, init=False)


def test_a_dataclass_with_slots(model, tmp_path):
    checkpoint = TrainingCheckpoint(tmp_path, state=Slotted("kept"))
    checkpoint.state.count = 3
    x = np.ones((4, 2))
    model.fit(x, x[:, 0], verbose=0, callbacks=[checkpoint])
    again = TrainingCheckpoint(tmp_path, state=Slotted())
    again.restore(model)
    assert (again.state.note, again.state.count) == ("kept", 3)


def test_half_written_files_do_not_matter(model, tmp_path):
    checkpoint = TrainingCheckpoint(tmp_path)
    checkpoint.set_model(model)
    checkpoint.step = 3
    checkpoint.save()
    weights = model.get_weights()
    # What a kill leaves of checkpoints that were being written or deleted.
    (tmp_path / "step-4_temp").mkdir()
    (tmp_path / "step-4_temp" / "part-0.tempstate7").write_bytes(b"half")
    (tmp_path / "step-5.data-00000-of-00001").write_bytes(b"half")
    (tmp_path / "step-2.index").write_bytes(b"old")
    model.set_weights([np.zeros_like(weight) for weight in weights])
    again = TrainingCheckpoint(tmp_path)
    assert again.restore(model) == 3
    for old, new in zip(weights, model.get_weights()):
        np.testing.assert_array_equal(old, new)
    again.step = 4
    again.save()
    assert TrainingCheckpoint(tmp_path).restore(model) == 4
    assert files_in(tmp_path) == [
        "checkpoint",
        *(
            f"step-{step}.{part}"
            for step in (3, 4)
            for part in ("checksums.json", "data-00000-of-00001", "index")
        ),
    ]
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert latest == str(tmp_path / "step-4")


def files_in(directory):
    return sorted(path.name for path in directory.iterdir())


def test_the_optimizer_of_another_compile_is_saved(model, tmp_path):
    checkpoint = TrainingCheckpoint(tmp_path)
    checkpoint.restore(model)
    x = np.ones((4, 2))
    for rate in (0.1, 0.5):
        model.compile(keras.optimizers.Adam(rate), "mse")
        model.fit(x, x[:, 0], verbose=0, callbacks=[checkpoint])
    again = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    again.compile(keras.optimizers.Adam(0.1), "mse")
    assert TrainingCheckpoint(tmp_path).restore(again) == 2
    for old, new in zip(state(model), state(again), strict=True):
        np.testing.assert_array_equal(old, new)


@dataclasses.dataclass
class Best:
    loss: float


@pytest.mark.parametrize("kind", [dict, Best])
def test_the_state_is_restored_in_place(kind, model, tmp_path):
    checkpoint = TrainingCheckpoint(tmp_path, state=kind(loss=1.0))
    checkpoint.restore(model)
    x = np.ones((4, 2))
    model.fit(x, x[:, 0], verbose=0, callbacks=[checkpoint])
    state = kind(loss=2.0)
    again = TrainingCheckpoint(tmp_path, state=state)
    again.restore(model)
    assert again.state is state and state == kind(loss=1.0)


def test_another_runs_checkpoints_are_not_deleted(model, tmp_path):
    x = np.ones((8, 2))
    fit = {"x": x, "y": x[:, 0], "batch_size": 2, "verbose": 0}
    first = TrainingCheckpoint(tmp_path)
    model.fit(**fit, epochs=2, callbacks=[first])
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match="without `restore`.*of step 8"):
        model.fit(**fit, callbacks=[TrainingCheckpoint(tmp_path)])
    assert sorted(tmp_path.iterdir()) == before
    # It goes on by itself.
    model.fit(**fit, callbacks=[first])
    assert first.step == 12


def test_paused(model, tmp_path):
    checkpoint = TrainingCheckpoint(tmp_path)
    checkpoint.set_model(model)
    checkpoint.paused = True
    checkpoint.save()
    assert checkpoint.latest is None


def test_errors(model, tmp_path):
    with pytest.raises(ValueError, match="`every` must be a.*every=0"):
        TrainingCheckpoint(tmp_path, every=0)
    with pytest.raises(ValueError, match="`keep` must be a.*keep=0"):
        TrainingCheckpoint(tmp_path, keep=0)

    unbuilt = keras.Sequential([keras.layers.Dense(1)])
    unbuilt.compile("sgd", "mse")
    checkpoint = TrainingCheckpoint(tmp_path)
    checkpoint.set_model(unbuilt)
    with pytest.raises(ValueError, match="must be built"):
        checkpoint.save()

    checkpoint = TrainingCheckpoint(tmp_path)
    checkpoint.set_model(model)
    checkpoint.save()
    other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    other.compile("sgd", "mse")
    with pytest.raises(ValueError, match="step-0' cannot be restored"):
        TrainingCheckpoint(tmp_path).restore(other)
    deeper = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(1), keras.layers.Dense(1)]
    )
    deeper.compile("sgd", "mse")
    with pytest.raises(ValueError, match="cannot be restored"):
        TrainingCheckpoint(tmp_path).restore(deeper)


def test_a_directory_that_cannot_be_written(model, tmp_path):
    (tmp_path / "file").write_text("")
    checkpoint = TrainingCheckpoint(tmp_path / "file" / "checkpoints")
    checkpoint.set_model(model)
    with pytest.raises(OSError, match="checkpoint of step 0 could not be"):
        checkpoint.save()
