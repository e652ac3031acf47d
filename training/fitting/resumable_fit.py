"""A fit that resumes from a checkpoint, even in the middle of an epoch."""

import sys
import time
from collections.abc import Callable
from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_pkm.callbacks import TrainingCheckpoint
from training.commands.signals import Signals
from training.fitting.skipped_steps import SkippedStepsOfRun
from training.fitting.stop_on_signal import StopOnSignal


def resumable_fit(
    model: keras.Model,
    batches: Callable[[int, int], tf.data.Dataset],
    *,
    steps: int,
    steps_per_epoch: int,
    checkpoint: TrainingCheckpoint,
    signals: Signals,
    callbacks: Sequence[keras.callbacks.Callback],
    max_skipped_steps: int | None,
    prints: bool = True,
) -> None:
    """Trains a compiled model to the end.

    Callbacks run in this order. Skipped steps are counted first, so that no
    checkpoint is written during a series of them. Then come the command's own
    callbacks, which may change the checkpoint's `state`; then the checkpoint,
    which saves it. Signals are handled last, after everything has been saved.
    """
    in_order = [
        SkippedStepsOfRun(checkpoint, max_skipped_steps),
        *callbacks,
        checkpoint,
        StopOnSignal(checkpoint, signals),
    ]
    # Only terminals can redraw a progress bar.
    verbose = (1 if sys.stdout.isatty() else 2) if prints else 0

    def fit(first_epoch: int, last_epoch: int, steps_of_epoch: int) -> None:
        model.fit(
            batches(checkpoint.step, steps - checkpoint.step),
            initial_epoch=first_epoch,
            epochs=last_epoch,
            steps_per_epoch=steps_of_epoch,
            callbacks=in_order,
            shuffle=False,
            verbose=verbose,
        )

    started, before = time.perf_counter(), checkpoint.seconds
    epoch, done = divmod(checkpoint.step, steps_per_epoch)
    with signals.wait_for_the_step():
        if done:
            fit(epoch, epoch + 1, steps_per_epoch - done)
            epoch += 1
        if checkpoint.step < steps:
            fit(epoch, steps // steps_per_epoch, steps_per_epoch)
    if prints and (spent := checkpoint.seconds - before):
        whole = time.perf_counter() - started
        print(
            f"Writing checkpoints and reading them back took {spent:.1f} s, "
            f"{spent / whole:.1%} of the {whole:,.0f} s of this training"
        )
