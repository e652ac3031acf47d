"""Fits the queries of new memories to the inputs that they will get."""

from typing import Any
from typing import TypeAlias

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_pkm.layers.masked_batch_normalization import MaskedBatchNormalization
from keras_pkm.layers.memories import memories
from keras_pkm.layers.memories import memories_for
from keras_pkm.layers.memories import tables
from keras_pkm.layers.memory import Memory
from keras_pkm.layers.observing import normalizations
from keras_pkm.ops.backend import backend
from keras_pkm.ops.implementation import fastest_by_default
from keras_pkm.ops.tensors import Tensor
from keras_pkm.probing.memory_probe import features_of
from keras_pkm.probing.model_batches import ModelBatches

#: A number of tokens; the mean of each channel, and its squared deviations.
_Moments: TypeAlias = tuple[float, np.ndarray, np.ndarray]


def adapt_memories(
    model: keras.Model,
    data: Any,
    batch_size: int | None = None,
    steps: int | None = None,
) -> None:
    """Sets the statistics of new memories' batch norms from data.

    The hidden states that a newly added memory gets may give its queries a mean
    and variance far from 0 and 1. Most tokens then read the same few slots, and
    teaching one text changes what all other texts read. After this call the
    queries have mean 0 and variance 1 over `data`, and reads spread over the
    slots. Nothing is trained, and the model computes the same as before.

    Args:
        model: any built Keras model whose memories have values of zero, as
            after `keras_pkm.models.add_memory`, and queries that are
            normalized by `"batch"`.
        data: as for `keras_pkm.models.MemoryProbe.measure`. A few thousand
            tokens are enough.
        batch_size: optional int. The number of examples in a batch, if `data`
            is arrays. Defaults to `None`: 32, as in Keras.
        steps: optional int. The number of batches. Defaults to `None`: all.

    Raises:
        ValueError: the model has no memory; a memory has values other than
            zero, so that the model would change; its queries are not normalized
            by batch, or have hidden layers; or `data` has no tokens, gives
            queries that are not finite, or is not accepted by `measure`.
            Nothing is changed then.

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
    strategy = backend.strategy_of(model)
    known: dict[int, list[_Moments]] = {id(layer): [] for layer in layers}

    def moments_of(features: Any) -> list[Tensor]:
        found: dict[int, list[Tensor]] = {id(layer): [] for layer in layers}

        def add_rows(
            layer: keras.layers.Layer, inputs: Tensor, mask: Tensor | None
        ) -> None:
            rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
            if mask is None:
                mask = ops.ones_like(rows[:, 0], "bool")
            found[id(layer)].append((rows, ops.reshape(mask, (-1,))))

        with fastest_by_default(), normalizations.observed_by(add_rows):
            if backbone is None:
                model(features, training=False)
            else:
                backbone(features_of(backbone, features), training=False)
        # A layer may be called several times, or not at all.
        return [
            _moments(*map(ops.concatenate, zip(*found[id(layer)])))
            if found[id(layer)]
            else ops.zeros((3, layer.moving_mean.shape[0]))
            for layer in layers
        ]

    step = backend.compiled(moments_of, model.variables, strategy)
    for x, _, _ in ModelBatches(data, model, "data", batch_size, steps):
        for layer, found in zip(layers, step(x)):
            count, first, second = ops.convert_to_numpy(found).astype("float64")
            if count[0]:
                moments = count[0], first / count, second
                known[id(layer)].append(moments)
    of_layers = [_merge(known[id(layer)]) for layer in layers]
    for layer, (count, mean, deviations) in zip(layers, of_layers):
        if not (count and np.isfinite([mean, deviations]).all()):
            raise ValueError(
                "`data` must have tokens that are not padding and whose "
                f"queries are finite. Received for '{layer.path}': "
                f"{count:.0f} tokens, queries of which the mean is "
                f"{np.mean(mean)}."
            )
    for layer, (count, mean, deviations) in zip(layers, of_layers):
        layer.moving_mean.assign(mean)
        layer.moving_variance.assign(deviations / count)


def _moments(rows: Tensor, mask: Tensor) -> Tensor:
    """The count, the sum and the squared deviations of each channel.

    They are sums of this replica; the deviations are those from the mean of
    all replicas. (A sum of squares would lose its precision in float32 for
    channels far from zero.)
    """
    tokens = ops.cast(mask, "float32")[:, None]
    rows = ops.where(mask[:, None], ops.cast(rows, "float32"), 0.0)
    count = ops.sum(tokens * ops.ones_like(rows), 0)
    first = ops.sum(rows, 0)
    total, tokens_of_all = backend.sum_over_replicas([first, count])
    mean = total / ops.maximum(tokens_of_all, 1.0)
    second = ops.sum(ops.square(rows - mean) * tokens, 0)
    return ops.stack([count, first, second])


def _merge(moments: list[_Moments]) -> _Moments:
    """The count, mean and squared deviations of several parts together."""
    count, mean, deviations = 0.0, np.zeros(1), np.zeros(1)
    for tokens, first, second in moments:
        distance, before, count = first - mean, count, count + tokens
        mean = mean + distance * tokens / count
        deviations = deviations + second + distance**2 * before * tokens / count
    return count, mean, deviations


def _batch_norms(model: keras.Model) -> list[MaskedBatchNormalization]:
    """The batch norms of the memories of a model, each of which has one."""
    found = memories_for(model, "to adapt")
    for number, table in tables(model).items():
        if np.any(ops.convert_to_numpy(table.values)):
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
        if len(of_memory) > 1:
            raise ValueError(
                "`model` must have memories with one batch norm each, because "
                "the statistics of a second one depend on the first. Received: "
                f"memory {number} with {len(of_memory)}. Add a memory without "
                "`query_hidden_dims`."
            )
        layers += of_memory
    return layers


def _below(memory: Memory) -> list[MaskedBatchNormalization]:
    return [
        layer
        for layer in memory._flatten_layers()
        if isinstance(layer, MaskedBatchNormalization)
    ]
