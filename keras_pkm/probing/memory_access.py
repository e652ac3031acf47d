"""What a model reads in its memories, batch by batch."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_pkm.layers.memories import memories


@dataclasses.dataclass(frozen=True)
class MemoryAccess:
    """The memory reads of one batch.

    Attributes:
        token_ids: int array of shape `(batch, length)`, or None if they are
            not known.
        is_token: bool array of the same shape, false at padding.
        memories: Slots and weights, arrays of shape
            `(batch, length, num_heads, top_k)`, by the number of the layer,
            counted from 1.
        num_slots: Number of slots of each memory, by the number of the layer.
    """

    token_ids: np.ndarray | None
    is_token: np.ndarray
    memories: dict[int, tuple[np.ndarray, np.ndarray]]
    num_slots: dict[int, int]


def read_backbone(
    backbone: keras.Model, batches: Iterable[Any]
) -> Iterable[MemoryAccess]:
    """Yields the memory reads of a backbone, batch by batch.

    Args:
        backbone: backbone with `memory_outputs`.
        batches: batches of its features, or of tuples that begin with them.
    """
    model = keras.Model(backbone.inputs, backbone.memory_outputs)
    num_slots = {
        number: memory.num_slots
        for number, memory in memories(backbone).items()
    }

    for batch in batches:
        features = batch[0] if isinstance(batch, tuple) else batch
        features = {
            name: ops.convert_to_numpy(features[name])
            for name in backbone.input
        }
        read = model.predict_on_batch(features)
        yield MemoryAccess(
            features["token_ids"],
            features["padding_mask"].astype(bool),
            {
                number: (np.asarray(slots), np.asarray(weights))
                for number, (slots, weights) in read.items()
            },
            num_slots,
        )
