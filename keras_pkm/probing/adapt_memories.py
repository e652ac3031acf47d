"""Fits the queries of new memories to the inputs that they will get."""

from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from keras_pkm.layers.masked_batch_normalization import MaskedBatchNormalization
from keras_pkm.layers.memories import memories
from keras_pkm.layers.memories import tables
from keras_pkm.layers.memory import Memory
from keras_pkm.layers.observing import normalizations
from keras_pkm.ops.implementation import fastest_by_default
from keras_pkm.ops.replicas import strategy_of
from keras_pkm.ops.tensors import Tensor
from keras_pkm.probing.backbone_features import features_of
from keras_pkm.probing.model_batches import ModelBatches


def adapt_memories(
    model: keras.Model,
    data: Any,
    batch_size: int | None = None,
    steps: int | None = None,
) -> None:
    """Sets the statistics of new memories' batch norms from data.

    The queries of a memory that was just added have the statistics of the
    stream there, which may be far from 0 and 1: most tokens then read the same
    few slots, and teaching one text changes what all others read. Afterwards
    the queries have mean 0 and variance 1 over `data`, and reads spread over
    the slots. Nothing is trained, and the model computes what it did before.

    Args:
        model: any built Keras model whose memories have values of zero, as
            after `keras_pkm.models.add_memory`, and queries that are
            normalized by `"batch"`.
        data: as for `keras_pkm.models.MemoryProbe.measure`. Some thousand
            tokens are enough.
        batch_size: optional int. The number of examples in a batch, if `data`
            is arrays. Defaults to `None`: 32, as in Keras.
        steps: optional int. The number of batches, if not all.

    Raises:
        ValueError: the model has no memory, or one whose values are not zero,
            which would change the model, or whose queries are not normalized
            by batch; or `data` has no tokens, queries of it are not finite, or
            `measure` would not take it. Nothing is changed then.

    Example:

    >>> plain = keras_hub.models.GPT2Backbone(100, 2, 2, 16, 32)
    >>> model = keras_pkm.models.add_memory(
    ...     plain,
    ...     memory_layers=(2,),
    ...     memory=keras_pkm.layers.ProductKeyMemory(8, top_k=4, key_dim=8),
    ... )
    >>> features = {
    ...     "token_ids": np.arange(24).reshape(2, 12),
    ...     "padding_mask": np.ones((2, 12), "int32"),
    ... }
    >>> keras_pkm.models.adapt_memories(model, features)
    """
    layers = _batch_norms(model)
    # The head of a language model takes most of the time.
    backbone = getattr(model, "backbone", None)
    if not isinstance(model, keras_hub.models.Task) or (
        memories(backbone).keys() != memories(model).keys()
    ):
        backbone = None
    strategy = strategy_of(model)
    totals = [np.zeros((3, 1)) for _ in layers]

    def sums_of(features: Any) -> list[Tensor]:
        found: dict[int, list[Tensor]] = {}

        def add_up(
            layer: keras.layers.Layer, inputs: Tensor, mask: Tensor | None
        ) -> None:
            found.setdefault(id(layer), []).append(_sums(inputs, mask))

        with fastest_by_default(), normalizations.observed_by(add_up):
            if backbone is None:
                model(features, training=False)
            else:
                backbone(features_of(backbone, features), training=False)
        # A layer may be called several times, or not at all.
        return [
            tf.add_n(found.get(id(layer), [tf.zeros((3, 1), "float64")]))
            for layer in layers
        ]

    @tf.function(reduce_retracing=True)
    def step(features: Any) -> list[Tensor]:
        sums = strategy.run(sums_of, (features,))
        return strategy.reduce("sum", sums, axis=None)

    for x, _, _ in ModelBatches(data, model, "data", batch_size, steps):
        totals = [total + sums.numpy() for total, sums in zip(totals, step(x))]
    for layer, total in zip(layers, totals):
        if not (np.isfinite(total).all() and total[2].all()):
            raise ValueError(
                "`data` must have tokens that are not padding and whose "
                f"queries are finite. Received for '{layer.path}': "
                f"{total[2, 0]:.0f} tokens, queries of which the sum is "
                f"{total[0].sum()}."
            )
    for layer, (first, second, count) in zip(layers, totals):
        mean = first / count
        layer.moving_mean.assign(mean)
        layer.moving_variance.assign(np.maximum(second / count - mean**2, 0))


def _sums(inputs: Tensor, mask: Tensor | None) -> Tensor:
    """Of each channel, in float64: the sum, that of squares, and the count."""
    channels = inputs.shape[-1]
    rows = tf.cast(tf.reshape(inputs, (-1, channels)), "float64")
    if mask is not None:
        rows = tf.boolean_mask(rows, tf.reshape(mask, [-1]))
    return tf.stack(
        [
            tf.reduce_sum(rows, 0),
            tf.reduce_sum(tf.square(rows), 0),
            tf.fill([channels], tf.cast(tf.shape(rows)[0], "float64")),
        ]
    )


def _batch_norms(model: keras.Model) -> list[MaskedBatchNormalization]:
    """The batch norms of the memories of a model, each of which has one."""
    found = memories(model)
    if not found:
        raise ValueError(
            "`model` must have a memory to adapt. Received: a "
            f"`{type(model).__name__}` without one."
        )
    for number, table in tables(model).items():
        if np.any(np.asarray(table.values)):
            raise ValueError(
                "`model` must have memories whose values are all zero, because "
                "other queries would read other values, and the model would "
                f"compute something else. Received: memory {number} with "
                "other values. Adapt memories right after `add_memory`."
            )
    layers = []
    for number, memory in found.items():
        of_memory = _below(memory)
        if not of_memory:
            raise ValueError(
                "`model` must have memories whose queries are normalized by "
                "batch. Received: memory "
                f"{number}, a `{type(memory).__name__}` without a "
                "`MaskedBatchNormalization`. Add a memory with "
                '`query_normalization="batch"`.'
            )
        layers += of_memory
    return layers


def _below(memory: Memory) -> list[MaskedBatchNormalization]:
    return [
        layer
        for layer in memory._flatten_layers()
        if isinstance(layer, MaskedBatchNormalization)
    ]
