"""Decoding with memories that need the ids of tokens."""

from typing import Any

import keras
from keras import ops

from keras_pkm.layers.memories import memories
from keras_pkm.layers.token_ids import token_ids_of_layers
from keras_pkm.ops.tensors import Tensor
from keras_pkm.trainers.task import Task


class DecodesWithTokenIds(Task):
    """Mixin for KerasHub's causal language models.

    `call_with_cache` and `score` call the blocks of the backbone one by one,
    without the ids of tokens. This mixin passes them to the memories that need
    them. The ids seen so far travel beside the cache, as
    `{"cache": cache, "token_ids": token_ids}`.
    """

    backbone: keras.Model

    @property
    def _context_size(self) -> int:
        found = memories(self.backbone).values()
        return max((memory.context_size for memory in found), default=0)

    def call_with_cache(
        self,
        token_ids: Tensor,
        cache: Any,
        cache_update_index: Any,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        size = self._context_size
        if not size:
            return super().call_with_cache(
                token_ids, cache, cache_update_index, *args, **kwargs
            )
        new = ops.cast(token_ids, "int32")
        if isinstance(cache, dict) and set(cache) == {"cache", "token_ids"}:
            first = (0, cache_update_index)
            seen = ops.slice_update(cache["token_ids"], first, new)
            cache = cache["cache"]
        else:
            # An empty cache is seeded with all places of the text.
            seen = new
        before = [[0, 0], [size - 1, 0]]
        context = ops.slice(
            ops.pad(seen, before, constant_values=-1),
            (0, cache_update_index),
            (ops.shape(new)[0], size - 1 + ops.shape(new)[1]),
        )
        with token_ids_of_layers(context):
            *outputs, cache = super().call_with_cache(
                token_ids, cache, cache_update_index, *args, **kwargs
            )
        return *outputs, {"cache": cache, "token_ids": seen}

    def score(self, token_ids: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not self._context_size:
            return super().score(token_ids, *args, **kwargs)
        with token_ids_of_layers(token_ids):
            return super().score(token_ids, *args, **kwargs)
