import keras
import numpy as np
import pytest

import keras_pkm
from keras_pkm.callbacks import SkippedSteps

GOOD, BAD = 1.0, np.nan


def fit(batches, callback, epochs=1, optimizer=None, **options):
    """Trains on batches of one number each; one that is NaN is skipped."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(
        optimizer or keras_pkm.optimizers.PKMAdam(),
        loss="mse",
        **options,
    )
    return model.fit(
        np.array(batches)[:, None],
        np.ones((len(batches), 1)),
        batch_size=1,
        epochs=epochs,
        shuffle=False,
        callbacks=[callback],
        verbose=0,
    )


@pytest.mark.parametrize("steps_per_execution", [1, 2, 3])
def test_counts(steps_per_execution):
    skipped = SkippedSteps()
    batches = [GOOD, BAD, BAD, GOOD, GOOD, BAD]
    history = fit(
        batches, skipped, epochs=2, steps_per_execution=steps_per_execution
    )
    assert skipped.total == 6
    assert history.history["skipped_steps"] == [3, 6]


def test_steps_that_cannot_be_counted():
    """Of endless data, Keras takes 4 steps more than 6."""
    with pytest.raises(ValueError, match="Received: 4 and 6 steps"):
        fit(6 * [GOOD], SkippedSteps(), steps_per_execution=4)


def test_counts_under_loss_scaling():
    optimizer = keras_pkm.optimizers.LossScaleOptimizer(
        keras_pkm.optimizers.PKMAdam()
    )
    skipped = SkippedSteps()
    fit([GOOD, BAD, GOOD, BAD], skipped, optimizer=optimizer)
    assert (skipped.total, skipped.in_a_row) == (2, 1)


def test_several_optimizers_are_refused():
    """Keras counts steps that one of them has skipped."""
    optimizer = keras.optimizers.MultiOptimizer(
        lambda _: keras_pkm.optimizers.PKMAdam()
    )
    optimizer.optimizers.append(keras_pkm.optimizers.PKMAdam())
    with pytest.raises(ValueError, match="must not be a `MultiOptimizer` that"):
        fit([GOOD], SkippedSteps(), optimizer=optimizer)


def test_another_fit_counts_anew():
    skipped = SkippedSteps()
    for _ in range(2):
        fit([BAD, GOOD], skipped)
        assert skipped.total == 1


def test_ends_training_at_the_limit():
    skipped = SkippedSteps(limit=2)
    fit([BAD, GOOD, BAD, GOOD], skipped)
    with pytest.raises(FloatingPointError, match="2 steps in a row. A lower"):
        fit([GOOD, BAD, BAD, BAD], skipped)
    assert skipped.total == 2


def test_a_limit_of_0_is_refused():
    with pytest.raises(ValueError, match="`limit`.*limit=0"):
        SkippedSteps(limit=0)
