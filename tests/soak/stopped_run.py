"""Runs that a signal stops, without a process for each of their parts."""

import contextlib
import signal
from collections.abc import Iterator

import pytest

from training.fitting import resumable_fit


@contextlib.contextmanager
def stopped_after(step: int) -> Iterator[None]:
    """Lets training end after a step, as if SIGTERM had come."""

    class Stops(resumable_fit.StopOnSignal):
        def on_train_batch_end(self, batch, logs=None):
            if self.checkpoint.step == step:
                self.signals.received = signal.SIGTERM
            super().on_train_batch_end(batch, logs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resumable_fit, "StopOnSignal", Stops)
        yield
