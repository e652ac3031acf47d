"""Watches the use of the memories while a model trains."""

import csv
import pathlib

import keras
import tensorflow as tf

from keras_pkm.models.memory_probe import MemoryProbe


class MemoryUsageMonitor(keras.callbacks.Callback):
    """Measures memory usage on held-out data every so many steps.

    The figures, see `keras_pkm.metrics.MemoryUsage`, go into the `logs` of the
    step and of the epoch under names such as `memory_4_top1_mu`, 4 being the
    layer's number counted from 1. Put this callback before those that record
    logs, as `keras.callbacks.CSVLogger`.

    Args:
        data: finite `tf.data.Dataset` of held-out batches, as for `evaluate`.
        every: optional int. Measure at steps that are multiples of it, and at
            the end of each epoch, or, if `None`, then only.
        csv_path: optional path of a CSV file, to which a row is added for each
            measurement and layer.
        tensorboard_dir: optional directory for TensorBoard summaries.

    Attributes:
        usage: dict. The last measurement, as from
            `keras_pkm.models.MemoryProbe.measure`; empty before the first.

    Example:

    >>> backbone = keras_pkm.models.PKMBertBackbone(
    ...     vocabulary_size=1000,
    ...     num_layers=4,
    ...     num_heads=4,
    ...     hidden_dim=64,
    ...     intermediate_dim=128,
    ...     memory_layers=(2, 4),
    ...     memory={"num_sub_keys": 32, "top_k": 8, "key_dim": 16},
    ... )
    >>> masked_lm = keras_pkm.models.PKMBertMaskedLM(backbone)
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
    >>> history.history["memory_4_top1_reads"]
    [384]
    """

    def __init__(self, data, every=None, csv_path=None, tensorboard_dir=None):
        super().__init__()
        if every is not None and every < 1:
            raise ValueError(
                f"`every` must be a positive number of steps. Received: "
                f"every={every}."
            )
        self.data = data
        self.every = every
        self.csv_path = csv_path and pathlib.Path(csv_path)
        self.tensorboard_dir = tensorboard_dir
        self._writer = None
        self._probe = None
        self._step = None
        self._figures = {}
        self.usage = {}

    def on_train_begin(self, logs=None):
        backbone = getattr(self.model, "backbone", self.model)
        if not getattr(backbone, "memory_outputs", None):
            raise ValueError(
                "`MemoryUsageMonitor` needs a model whose backbone has "
                f"memories. Received: `{self.model.name}`, which has none."
            )
        self._probe = MemoryProbe(backbone)
        if self.tensorboard_dir and self._writer is None:
            self._writer = tf.summary.create_file_writer(
                str(self.tensorboard_dir)
            )

    def on_train_batch_end(self, batch, logs=None):
        if self.every and self._iterations() % self.every == 0:
            self._measure()
            if logs is not None:
                logs.update(self._figures)

    def on_epoch_end(self, epoch, logs=None):
        self._measure()
        if logs is not None:
            logs.update(self._figures)

    def on_train_end(self, logs=None):
        if self._writer is not None:
            self._writer.flush()

    def _iterations(self):
        return int(self.model.optimizer.iterations.numpy())

    def _measure(self):
        step = self._iterations()
        if step == self._step:
            return
        self._step = step
        usage = self.usage = self._probe.measure(self.data)
        self._figures = {
            f"memory_{number}_{name}": value
            for number, figures in usage.items()
            for name, value in figures.items()
        }
        if self.csv_path:
            self._append_rows(step, usage)
        if self._writer is not None:
            with self._writer.as_default(step=step):
                for name, value in self._figures.items():
                    tf.summary.scalar(name, value)

    def _append_rows(self, step, usage):
        is_new = not self.csv_path.exists()
        with open(self.csv_path, "a", newline="") as file:
            for number, figures in usage.items():
                row = {"step": step, "layer": number, **figures}
                writer = csv.DictWriter(file, list(row))
                if is_new:
                    writer.writeheader()
                    is_new = False
                writer.writerow(row)
