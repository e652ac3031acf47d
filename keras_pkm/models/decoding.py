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
            seen, cache = cache["token_ids"], cache["cache"]
        else:
            seen = _no_ids_yet(new, cache, cache_update_index)
        seen = ops.slice_update(seen, (0, cache_update_index), new)
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


def _no_ids_yet(new: Tensor, cache: Any, cache_update_index: Any) -> Tensor:
    """Places for all ids of the text, of which none is known."""
    # KerasHub's caches have the shape (batch, layers, 2, length, heads, width);
    # Gemma 3 has a pair of (batch, length, heads, width) for each layer.
    first = keras.tree.flatten(cache)[0]
    shape: tuple[Any, ...] = tuple(getattr(first, "shape", ()))
    axis = {6: 3, 4: 1}.get(len(shape))
    missing = 0 if axis is None else shape[axis] - new.shape[1]
    # SmolLM3 begins with a tensor of zero, and the whole text.
    is_whole = axis is not None and missing == 0
    is_first = isinstance(cache_update_index, int) and cache_update_index == 0
    if not (is_first or is_whole):
        raise ValueError(
            "`cache` must be what `call_with_cache` returned for the tokens "
            "before these, because memories of n-grams need their ids. "
            "Received: another cache, with "
            f"cache_update_index={cache_update_index!r}. Begin with an empty "
            "cache and cache_update_index=0."
        )
    return ops.pad(ops.zeros_like(new), [[0, 0], [0, max(0, missing or 0)]])
