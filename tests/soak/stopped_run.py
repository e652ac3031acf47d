"""Runs that a signal stops, without a process for each of their parts."""

import contextlib
import pathlib
import signal
from collections.abc import Iterator

import pytest

from tests.own_collectives import use_own_collectives
from training.fitting import resumable_fit
from training.pretrain import main


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


def run_whole_and_in_parts(
    args: list[str], root: pathlib.Path, stop_after: int
) -> tuple[pathlib.Path, pathlib.Path]:
    """Trains without an interruption, and again with one.

    Args:
        args: The command's arguments.
        root: A directory for both runs.
        stop_after: The step after which the second run is stopped.

    Returns:
        The directories of both runs.
    """
    whole, parts = root / "whole", root / "parts"
    assert main([*args, "--out", str(whole)]) == 0
    use_own_collectives()
    with stopped_after(stop_after):
        assert main([*args, "--out", str(parts)]) == 128 + signal.SIGTERM
    assert not (parts / "results.json").exists()
    use_own_collectives()
    assert main([*args, "--out", str(parts)]) == 0
    return whole, parts
