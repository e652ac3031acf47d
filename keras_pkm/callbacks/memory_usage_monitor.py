"""Watches how a model's memories are used while it trains."""

import csv
import importlib
import importlib.util
import logging
import math
import os
import pathlib
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_pkm.callbacks.slot_counts import Counts
from keras_pkm.callbacks.slot_counts import list_slot_counts
from keras_pkm.callbacks.slot_counts import read_slot_counts
from keras_pkm.callbacks.slot_counts import write_slot_counts
from keras_pkm.layers.memories import memories_for
from keras_pkm.metrics.memory_staleness import MemoryStaleness
from keras_pkm.metrics.numbers import result_numbers
from keras_pkm.ops.arguments import positive_int_or_none
from keras_pkm.probing.memory_probe import MemoryProbe
from keras_pkm.probing.model_batches import Batch
from keras_pkm.probing.model_batches import ModelBatches

_log = logging.getLogger(__name__)


class MemoryUsageMonitor(keras.callbacks.Callback):
    """Measures memory usage on held-out data at regular intervals.

    The figures of `keras_pkm.metrics.MemoryUsage` and `MemoryStaleness` are
    added to the `logs` of the step and of the epoch, under names such as
    `memory_4_top1_mu` and `memory_4_stale`, where 4 is the layer's number,
    counted from 1. Put this callback before those that record logs, such as
    `keras.callbacks.CSVLogger`.

    A slot is stale if it was read at an earlier measurement but not at the
    last one; no old checkpoints are needed. To resume training in another
    process, pass `counts_dir`, which stores the measurements. If training
    resumes at an earlier step, measurements of later steps are ignored, and
    replaced as training reaches them. With another model, or after another
    `compile`, staleness is measured from scratch.

    Args:
        data: the held-out data, as for `evaluate`: arrays, a tuple `(x, y)` or
            `(x, y, sample_weight)` of arrays, or batches of these, such as a
            `tf.data.Dataset`, a `keras.utils.PyDataset`, or a generator; see
            `keras_pkm.models.MemoryProbe.measure`. Texts are preprocessed by
            the model's preprocessor. The batches of a generator are read once,
            when training begins, and kept. Each batch takes about a third of
            the time of a train step.
        every: optional int. Measure at steps that are multiples of it, and at
            the end of each epoch. Defaults to `None`: at the ends of epochs
            only.
        csv_path: optional path of a CSV file, which gets a row for each
            measurement and layer.
        tensorboard_dir: optional directory for TensorBoard summaries: the
            figures, histograms of how often slots are read (as log10 of the
            reads plus 1), and, if the number of slots is a square, the same as
            an image of the grid of sub-keys.
        counts_dir: optional directory, to which each measurement writes a file
            `step-STEP.npz` with the reads of each slot.
        batch_size: optional int. The number of examples in a batch, if `data`
            is arrays. Defaults to `None`: 32, or with `steps` as many as make
            that number of batches, as in Keras.
        steps: optional int. The number of batches of a measurement. Endless
            data needs it. Defaults to `None`: all batches.

    Attributes:
        usage: dict. The last measurement, as from
            `keras_pkm.models.MemoryProbe.measure`; empty before the first.
        staleness: dict of `MemoryStaleness`, by the number of the layer.

    Example:

    >>> backbone = keras_hub.models.BertBackbone(
    ...     vocabulary_size=1000,
    ...     num_layers=2,
    ...     num_heads=4,
    ...     hidden_dim=64,
    ...     intermediate_dim=128,
    ... )
    >>> masked_lm = keras_pkm.models.add_memory(
    ...     keras_hub.models.BertMaskedLM(backbone),
    ...     memory_layers=(2,),
    ...     memory={"num_sub_keys": 32, "top_k": 8, "key_dim": 16},
    ...     memory_block="resm",
    ... )
    >>> masked_lm.backbone.pooled_dense.trainable = False
    >>> masked_lm.compile(keras_pkm.optimizers.PKMAdam())
    >>> features = {
    ...     "token_ids": np.ones((8, 12), "int32"),
    ...     "segment_ids": np.zeros((8, 12), "int32"),
    ...     "padding_mask": np.ones((8, 12), "int32"),
    ...     "mask_positions": np.ones((8, 1), "int32"),
    ... }
    >>> batches = tf.data.Dataset.from_tensors((features, np.ones((8, 1))))
    >>> monitor = keras_pkm.callbacks.MemoryUsageMonitor(batches, every=100)
    >>> history = masked_lm.fit(
    ...     batches, callbacks=[monitor], shuffle=False, verbose=0
    ... )
    >>> history.history["memory_2_top1_reads"]
    [384]
    """

    def __init__(
        self,
        data: Any,
        every: int | None = None,
        csv_path: str | os.PathLike[str] | None = None,
        tensorboard_dir: str | os.PathLike[str] | None = None,
        counts_dir: str | os.PathLike[str] | None = None,
        batch_size: int | None = None,
        steps: int | None = None,
    ):
        super().__init__()
        for package in ("tensorboard", "tensorflow") if tensorboard_dir else ():
            if importlib.util.find_spec(package) is None:
                raise ImportError(
                    f"`tensorboard_dir` needs the package {package}, which is "
                    f"not installed: pip install {package}"
                )
        self.data = data
        self.every = positive_int_or_none("every", every)
        # Keras need not wait for the end of a step if nothing is measured then.
        self.async_safe = every is None
        self.csv_path = pathlib.Path(csv_path) if csv_path else None
        self.tensorboard_dir = tensorboard_dir
        self.counts_dir = counts_dir
        self.batch_size = positive_int_or_none("batch_size", batch_size)
        self.steps = positive_int_or_none("steps", steps)
        self._batches: Iterable[Batch] = ()
        # TensorFlow's, whatever the backend is.
        self._summary: Any = None
        self._writer: Any = None
        self._probe: MemoryProbe | None = None
        self._step: int | None = None
        # The last step of the staleness.
        self._newest = -1
        self._done = 0
        self._figures: dict[str, float] = {}
        self.usage: dict[int, dict[str, float]] = {}
        self.staleness: dict[int, MemoryStaleness] = {}

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        memories_for(self.model, "to monitor")
        before, probe = self._probe, self._probe_of_model()
        self._done = self._iterations()
        # Another model, or one that was compiled anew, begins from step 0.
        if probe is not before or self._done < self._newest:
            self._begin_staleness(probe)
        self._step = None
        if self.csv_path:
            self.csv_path.parent.mkdir(parents=True, exist_ok=True)
        if self.tensorboard_dir and self._writer is None:
            self._summary = importlib.import_module("tensorflow").summary
            self._writer = self._summary.create_file_writer(
                str(self.tensorboard_dir)
            )

    def _probe_of_model(self) -> MemoryProbe:
        # Traced once, however often `fit` is called.
        if self._probe is None or self._probe.model is not self.model:
            self._batches = ModelBatches(
                self.data, self.model, "data", self.batch_size, self.steps
            ).keep()
            # What cannot be read is refused before training.
            next(iter(self._batches))
            self._probe = MemoryProbe(self.model)
        return self._probe

    def _begin_staleness(self, probe: MemoryProbe) -> None:
        self._newest = -1
        self.staleness = {
            number: MemoryStaleness(len(counts["top1"]))
            for number, counts in probe.counts.items()
        }
        if not self.counts_dir:
            return
        done = self._iterations()
        for step in list_slot_counts(self.counts_dir):
            # Counts of later steps were written before an interruption.
            # Training resumed from an earlier checkpoint and will replace them.
            if step > done:
                continue
            try:
                counts = read_slot_counts(self.counts_dir, step)
                self._add_to_staleness(step, counts)
            except ValueError as error:
                _log.warning("Staleness is without step %s: %s", step, error)

    def _add_to_staleness(self, step: int, counts: Counts) -> None:
        # No step was taken since another `fit`, or since the process began.
        if step == self._newest:
            return
        found = {number: len(each["top1"]) for number, each in counts.items()}
        expected = {
            number: metric.num_slots
            for number, metric in self.staleness.items()
        }
        if found != expected:
            raise ValueError(
                "the counts must be those of the model's memories, with "
                f"{expected} slots. Received: counts of {found}."
            )
        for number, metric in self.staleness.items():
            metric.update_state(counts[number]["top1"], step)
        self._newest = step

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        if not self.every:
            return
        before, self._done = self._done, self._iterations()
        # With `steps_per_execution` several steps end at once.
        if self._done // self.every > before // self.every:
            self._measure()
            if logs is not None:
                logs.update(self._figures)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        self._measure()
        if logs is not None:
            logs.update(self._figures)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self._writer is not None:
            self._writer.flush()

    def _iterations(self) -> int:
        return int(ops.convert_to_numpy(self.model.optimizer.iterations))

    def _measure(self) -> None:
        step = self._iterations()
        if step == self._step:
            return
        self._step = step
        probe = self._probe_of_model()
        usage = self.usage = probe.measure_batches(self._batches)
        counts = probe.counts
        self._add_to_staleness(step, counts)
        self._figures = {
            f"memory_{number}_{name}": value
            for number, figures in usage.items()
            for name, value in {**figures, **self._staleness_of(number)}.items()
        }
        if self.csv_path:
            _append_rows(self.csv_path, step, usage)
        if self.counts_dir:
            write_slot_counts(self.counts_dir, step, counts)
        if self._writer is not None:
            with self._writer.as_default(step=step):
                self._write_summaries(counts)

    def _staleness_of(self, number: int) -> dict[str, float]:
        return result_numbers(self.staleness[number])

    def _write_summaries(self, counts: Counts) -> None:
        for name, value in self._figures.items():
            self._summary.scalar(name, value)
        for number, layer in counts.items():
            # A few slots are read a thousand times as often as most others.
            reads = np.log10(layer["reads"] + 1)
            self._summary.histogram(f"memory_{number}_log10_reads", reads)
            side = math.isqrt(len(reads))
            if side**2 == len(reads):
                grid = reads.reshape(1, side, side, 1) / max(reads.max(), 1)
                self._summary.image(f"memory_{number}_grid", grid)


def _append_rows(
    path: pathlib.Path, step: int, usage: dict[int, dict[str, float]]
) -> None:
    is_new = not path.exists() or not path.stat().st_size
    with open(path, "a", newline="") as file:
        for number, figures in usage.items():
            row = {"step": step, "layer": number, **figures}
            writer = csv.DictWriter(file, list(row))
            if is_new:
                writer.writeheader()
                is_new = False
            writer.writerow(row)
