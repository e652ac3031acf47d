"""One stage of pretraining: a schedule, an optimizer, a fit."""

import pathlib
import sys
import time

import keras
import keras_hub

from keras_pkm.callbacks import MemoryUsageMonitor
from keras_pkm.optimizers import LinearWarmup
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from training.pretraining_data import PretrainingData
from training.recipes import PretrainingRecipe
from training.run_directory import save_preset


def compile_model(model, recipe: PretrainingRecipe, steps: int):
    """Gives the model a fresh optimizer, and a schedule of `steps` steps."""
    has_memory = bool(model.backbone.memory_outputs)
    with model.distribute_strategy.scope():
        optimizer = PKMAdam(
            learning_rate=LinearWarmup(
                recipe.learning_rate, int(recipe.warmup_ratio * steps), steps
            ),
            memory_learning_rate=recipe.memory_learning_rate,
            weight_decay=recipe.weight_decay or None,
            global_clipnorm=recipe.clip_norm,
            memory_pattern=r"(^|/)memory_values$" if has_memory else None,
            reduction=recipe.reduction,
        )
        if model.dtype_policy.name == "mixed_float16":
            optimizer = LossScaleOptimizer(optimizer)
    # The masked-LM loss has no gradient for the pooler.
    model.backbone.pooled_dense.trainable = False
    model.compile(
        optimizer,
        # Keras' own loss divides by all mask positions, empty ones included.
        weighted_metrics=[keras_hub.metrics.Perplexity(from_logits=True)],
        # Off in all stages, so that their speeds compare.
        jit_compile=False,
    )


def evaluate(model, data: PretrainingData) -> float:
    """Returns the held-out perplexity of a compiled model."""
    logs = model.evaluate(data.held_out_batches(), return_dict=True, verbose=0)
    return logs["perplexity"]


def train_stage(
    model,
    data: PretrainingData,
    *,
    stage: int,
    steps: int,
    logs: pathlib.Path,
    presets: dict,
) -> dict:
    """Trains a compiled model for a stage and returns its figures.

    Args:
        model: compiled masked-LM task.
        data: `PretrainingData`.
        stage: int. Number of the stage: each has its own order and masks.
        steps: int. Its steps.
        logs: path without suffix, for CSV files and the directory of
            TensorBoard's summaries.
        presets: dict with the paths under which to keep the `"best"` and the
            `"last"` model; either may be missing.
    """
    recipe = data.recipe
    every = recipe.evaluate_every or default_evaluate_every(steps)
    throughput = _Throughput()
    held_out = data.held_out_batches()
    callbacks = [throughput, _SavePresets(data.preprocessor, **presets)]
    monitor = None
    if model.backbone.memory_outputs:
        monitor = MemoryUsageMonitor(
            held_out, csv_path=logs.with_name(f"{logs.name}-memory.csv")
        )
        callbacks.append(monitor)
    callbacks += [
        keras.callbacks.CSVLogger(str(logs.with_suffix(".csv"))),
        keras.callbacks.TensorBoard(str(logs), write_graph=False),
    ]
    history = model.fit(
        data.training_batches(stage, steps),
        epochs=steps // every,
        steps_per_epoch=every,
        validation_data=held_out,
        callbacks=callbacks,
        shuffle=False,
        # Bars that redraw themselves are for terminals.
        verbose=1 if sys.stdout.isatty() else 2,
    )
    figures = {
        "steps": steps,
        "perplexity": history.history["val_perplexity"][-1],
        "tokens_per_second": throughput.batches_per_second
        * recipe.batch_size
        * recipe.sequence_length,
    }
    if monitor is not None:
        figures["memory_usage"] = monitor.usage
    return figures


def default_evaluate_every(steps: int) -> int:
    """Returns the steps between at most five evenly spaced evaluations."""
    evaluations = next(n for n in (5, 4, 3, 2, 1) if steps % n == 0)
    return steps // evaluations


class _SavePresets(keras.callbacks.Callback):
    """Keeps the model at each evaluation: the last, and the best so far."""

    def __init__(self, preprocessor, best=None, last=None):
        super().__init__()
        self.preprocessor = preprocessor
        self.best = best
        self.last = last
        self._lowest = float("inf")

    def on_epoch_end(self, epoch, logs=None):
        if self.last:
            save_preset(self.model, self.preprocessor, self.last)
        if self.best and logs["val_perplexity"] < self._lowest:
            self._lowest = logs["val_perplexity"]
            save_preset(self.model, self.preprocessor, self.best)


class _Throughput(keras.callbacks.Callback):
    """Batches a second, without the first batch of an epoch.

    The very first traces the graph; the clock stands still in evaluations.
    """

    def __init__(self):
        super().__init__()
        self._batches = 0
        self._seconds = 0.0
        self._since = None

    def on_epoch_begin(self, epoch, logs=None):
        self._since = None

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        if self._since is not None:
            self._batches += 1
            self._seconds += now - self._since
        self._since = now

    @property
    def batches_per_second(self):
        """NaN for epochs of a single batch."""
        if not self._batches:
            return float("nan")
        return self._batches / self._seconds
