import keras
import numpy as np
import pytest

from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.optimizers import PKMAdam
from training.fitting.resumable_fit import Progress
from training.fitting.resumable_fit import SkippedStepsOfRun
from training.runs.user_error import RunError


def test_a_series_goes_on_from_one_fit_to_the_next(tmp_path):
    """As that of an epoch which was begun before the run was stopped."""
    checkpoint = TrainingCheckpoint(tmp_path, state=Progress())
    skipped = SkippedStepsOfRun(checkpoint, limit=3)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(PKMAdam(), loss="mse")

    def fit(*batches):
        model.fit(
            np.array(batches)[:, None],
            np.ones((len(batches), 1)),
            batch_size=1,
            shuffle=False,
            callbacks=[skipped, checkpoint],
            verbose=0,
        )

    fit(1.0, np.nan, np.nan)
    # No checkpoint is written in a series.
    assert checkpoint.latest is None and checkpoint.state.skipped_steps == 2
    with pytest.raises(RunError, match="at the 3 steps 2 to 4, counted from 1"):
        fit(np.nan, 1.0)
