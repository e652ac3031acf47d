"""The order of rows."""

import numpy as np
import pytest

from training.batches.row_order import shuffled_rows


@pytest.mark.parametrize("seed", [0, 1, 42])
@pytest.mark.parametrize("count", [100, 1_000, 2_000])
def test_each_epoch_is_a_shuffle(seed, count):
    epochs = [
        shuffled_rows(count, count, seed, np.int64(epoch))[0].numpy()
        for epoch in range(3)
    ]
    places = np.arange(count)
    # Four standard deviations of what chance gives.
    most = 4 / np.sqrt(count)
    for rows in epochs:
        assert sorted(rows) == places.tolist()
        assert abs(np.corrcoef(places, rows)[0, 1]) < most
    for a, b in zip(epochs, epochs[1:]):
        assert abs(np.corrcoef(a, b)[0, 1]) < most
