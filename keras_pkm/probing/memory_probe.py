"""Measures how a model uses its memories on some data."""

import keras
import numpy as np
import tensorflow as tf

from keras_pkm.probing.usage_counter import UsageCounter


class MemoryProbe:
    """Runs a backbone over data and measures the use of each memory.

    Args:
        backbone: backbone with `memory_outputs`, such as
            `keras_pkm.models.PKMBertBackbone`.

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
    >>> probe = keras_pkm.models.MemoryProbe(backbone)
    >>> features = {
    ...     "token_ids": np.ones((2, 12), "int32"),
    ...     "segment_ids": np.zeros((2, 12), "int32"),
    ...     "padding_mask": np.ones((2, 12), "int32"),
    ... }
    >>> usage = probe.measure(tf.data.Dataset.from_tensors(features))
    >>> sorted(usage), usage[4]["top1_reads"]
    ([2, 4], 96)
    """

    def __init__(self, backbone: keras.Model):
        self.backbone = backbone
        self._strategy = backbone.distribute_strategy
        self._accesses = keras.Model(backbone.inputs, backbone.memory_outputs)
        with self._strategy.scope():
            self._usage = UsageCounter.of_backbone(backbone)
        self._step = tf.function(
            lambda features: self._strategy.run(self._count, (features,)),
            reduce_retracing=True,
        )

    def _count(self, features: dict[str, tf.Tensor]) -> None:
        features = {name: features[name] for name in self.backbone.input}
        memories = self._accesses(features, training=False)
        self._usage.update(memories, features["padding_mask"])

    def measure(self, data: tf.data.Dataset) -> dict[int, dict[str, float]]:
        """Measures the use of each memory over `data`.

        Args:
            data: finite `tf.data.Dataset` of the backbone's features, or of
                tuples that begin with them, as for training. Under
                `tf.distribute` its batches must divide by the replicas.

        Returns:
            A dict, from the number of the layer, counted from 1, to a dict of
            the figures of `keras_pkm.metrics.MemoryUsage`, as Python numbers.
        """
        self._usage.reset()
        if self._strategy.num_replicas_in_sync > 1:
            data = self._strategy.experimental_distribute_dataset(data)
        for batch in data:
            self._step(batch[0] if isinstance(batch, tuple) else batch)
        return self._usage.figures

    @property
    def counts(self) -> dict[int, dict[str, np.ndarray]]:
        """What the last measurement counted, `MemoryUsage.counts` by layer."""
        return self._usage.counts
