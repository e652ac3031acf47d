"""Measures how a model uses its memories on some data."""

from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_pkm.layers.memories import memories_for
from keras_pkm.layers.observing import memory_reads
from keras_pkm.ops.backend import backend
from keras_pkm.ops.implementation import fastest_by_default
from keras_pkm.ops.tensors import Tensor
from keras_pkm.probing.compiled_for_model import CompiledForModel
from keras_pkm.probing.model_batches import Batch
from keras_pkm.probing.model_batches import ModelBatches
from keras_pkm.probing.usage_counter import UsageCounter


class MemoryProbe:
    """Runs a model over data and measures the use of each memory.

    Args:
        model: any Keras model with memories, such as a
            `keras_pkm.models.MemoryBackbone`, or a task. A task with a
            preprocessor takes texts.

    Raises:
        ValueError: the model has no memory, or this is called in the scope of a
            `tf.distribute` strategy in which the model was not created.

    Example:

    >>> plain = keras_hub.models.BertBackbone(
    ...     vocabulary_size=1000,
    ...     num_layers=4,
    ...     num_heads=4,
    ...     hidden_dim=64,
    ...     intermediate_dim=128,
    ... )
    >>> backbone = keras_pkm.models.add_memory(
    ...     plain,
    ...     memory_layers=(2, 4),
    ...     memory={"num_sub_keys": 32, "top_k": 8, "key_dim": 16},
    ...     memory_block="resm",
    ... )
    >>> probe = keras_pkm.models.MemoryProbe(backbone)
    >>> features = {
    ...     "token_ids": np.ones((2, 12), "int32"),
    ...     "segment_ids": np.zeros((2, 12), "int32"),
    ...     "padding_mask": np.ones((2, 12), "int32"),
    ... }
    >>> usage = probe.measure(features)  # or batches, as for `evaluate`
    >>> sorted(usage), usage[4]["top1_reads"]
    ([2, 4], 96)
    """

    def __init__(self, model: keras.Model):
        self.model = model
        self._memories = memories_for(model, "to measure")
        self._strategy = backend.strategy_of(model)
        self._accesses = None
        if isinstance(model, keras_hub.models.Backbone | keras_hub.models.Task):
            # Layers above the last memory need not be computed.
            self._backbone = getattr(model, "backbone", model)
            outputs = getattr(self._backbone, "memory_outputs", {})
            inputs = self._backbone.input
            # Reads at images have no place in a mask of text.
            has_images = isinstance(inputs, dict) and "images" in inputs
            if set(outputs) == set(self._memories) and not has_images:
                self._accesses = keras.Model(self._backbone.inputs, outputs)
        with self._strategy.scope():
            self._usage = UsageCounter.of_model(model)
        self._step = CompiledForModel(
            model,
            lambda: backend.compiled(
                self._count,
                [*model.variables, *self._usage.variables],
                self._strategy,
            ),
        )

    def _count(self, features: Any) -> list[Tensor]:
        with fastest_by_default():
            self._count_reads(features)
        return []

    def _count_reads(self, features: Any) -> None:
        if self._accesses is not None:
            features = features_of(self._backbone, features)
            accesses = self._accesses(features, training=False)
            self._usage.update(accesses, features.get("padding_mask"))
            return
        numbers = {id(memory): n for n, memory in self._memories.items()}

        def count(
            memory: keras.layers.Layer,
            slots: Tensor,
            weights: Tensor,
            mask: Tensor | None,
        ) -> None:
            self._usage.update({numbers[id(memory)]: (slots, weights)}, mask)

        with memory_reads.observed_by(count):
            self.model(features, training=False)

    def measure(
        self,
        data: Any,
        batch_size: int | None = None,
        steps: int | None = None,
    ) -> dict[int, dict[str, float]]:
        """Measures the use of each memory over `data`.

        Labels and sample weights are ignored. All tokens except padding count.

        Args:
            data: as for `evaluate`. Either arrays: the model's inputs, or a
                tuple `(x,)`, `(x, y)` or `(x, y, sample_weight)`. Or batches of
                these: a `tf.data.Dataset`, a `keras.utils.PyDataset`, a
                generator, or a list of tuples. Several inputs are a dict, a
                list, or a tuple in a tuple, `((x1, x2),)`. `x` may be texts,
                such as a list of str, if the model is a task with a
                preprocessor. Under `tf.distribute` each batch is divided among
                the replicas.
            batch_size: optional int. The number of examples in a batch, if
                `data` is arrays. Defaults to `None`: 32, or with `steps` as
                many as make that number of batches, as in Keras.
            steps: optional int. The number of batches to measure. Endless data
                needs it, and so does data of unknown length, such as a
                generator, if it has more than 10,000 batches. Defaults to
                `None`: all batches.

        Returns:
            A dict that maps the number of each layer, counted from 1, to the
            figures of `keras_pkm.metrics.MemoryUsage`, a dict of Python
            numbers. Memories outside of Transformer blocks are numbered after
            those.

        Raises:
            ValueError: `data` is of another kind, is empty, has fewer batches
                than `steps`, or is endless without `steps`.
        """
        return self.measure_batches(
            ModelBatches(data, self.model, "data", batch_size, steps)
        )

    def measure_batches(
        self, batches: Iterable[Batch]
    ) -> dict[int, dict[str, float]]:
        """Measures the use of each memory over prepared batches."""
        self._usage.reset()
        for x, _, _ in batches:
            self._step(x)
        return self._usage.figures

    def count_each(
        self,
        data: Any,
        batch_size: int | None = None,
        steps: int | None = None,
    ) -> Iterator[dict[int, dict[str, np.ndarray]]]:
        """Counts the reads of each batch separately.

        Args:
            data: as for `measure`.
            batch_size: as for `measure`.
            steps: as for `measure`.

        Yields:
            `MemoryUsage.counts` of each batch, by layer.
        """
        for x, _, _ in ModelBatches(
            data, self.model, "data", batch_size, steps
        ):
            yield self.count(x)

    def count(self, x: Any) -> dict[int, dict[str, np.ndarray]]:
        """Counts the reads of one batch.

        Args:
            x: the model's inputs, preprocessed.

        Returns:
            `MemoryUsage.counts`, by layer.
        """
        self._usage.reset()
        self._step(x)
        return self.counts

    @property
    def counts(self) -> dict[int, dict[str, np.ndarray]]:
        """`MemoryUsage.counts` of the last measurement, by layer."""
        return self._usage.counts


def features_of(backbone: keras.Model, features: Any) -> dict[str, Any]:
    """Returns the inputs of a backbone by name.

    Args:
        backbone: A functional model with named inputs.
        features: A dict, which may have more, or a list or tuple in the order
            of the inputs.
    """
    inputs = backbone.input
    if not isinstance(features, dict):
        features = keras.tree.pack_sequence_as(
            inputs, keras.tree.flatten(features)
        )
    return {name: features[name] for name in inputs}
