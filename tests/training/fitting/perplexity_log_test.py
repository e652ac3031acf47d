"""The curve of the training perplexity."""

import csv
import math

import pytest

from training.fitting.logs import PerplexityLog


def test_what_was_measured_is_written_at_once(tmp_path):
    """A run that is stopped within an epoch has a curve without a hole."""
    path, steps = tmp_path / "log.csv", iter((1, 2, 3, 4))
    log = PerplexityLog(path, 2, lambda: next(steps))
    log.on_epoch_begin(0)
    losses = [3.0, 2.0, 1.0, 1.0]
    for batch in range(4):
        mean = sum(losses[: batch + 1]) / (batch + 1)
        log.on_train_batch_end(batch, {"perplexity": math.exp(mean)})
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows[0] == ["step", "perplexity"]
    assert [int(step) for step, _ in rows[1:]] == [1, 2, 4]
    found = [math.log(float(value)) for _, value in rows[1:]]
    assert found == pytest.approx([3.0, 2.0, 1.0])
