"""Hashes of n-grams of token ids, the same on all backends.

They are MurmurHash3 (x86, 32 bits) of the ids as 32-bit words. Backends do not
agree on unsigned integers and on int64, so that all of it is int32, whose
products and sums wrap around.
"""

from collections.abc import Sequence

import numpy as np
from keras import ops

from keras_pkm.ops.tensors import Tensor

# A tag has a seed of its own, so that it does not follow from the slot.
_TAG_SEED = 0x7F4A7C15


def ngram_slots(
    contexts: Tensor,
    orders: Sequence[int],
    num_heads: int,
    num_slots: int,
    seed: int,
) -> Tensor:
    """Returns the slots of the n-grams that end at each token.

    Args:
        contexts: int32 tensor of shape `(tokens, size)`: the ids of each token
            and of those before it, in the order of the text.
        orders: The numbers n of tokens in an n-gram, at most `size`.
        num_heads: The number of hashes of each n-gram.
        num_slots: The number of slots.
        seed: Other seeds give other hashes.

    Returns:
        An int32 tensor of shape `(tokens, num_heads, len(orders))`.
    """
    seeds = np.arange(num_heads, dtype="int64") + seed * num_heads
    hashes = [
        murmur3(contexts[:, None, -order:], seeds[None]) for order in orders
    ]
    positive = ops.bitwise_and(ops.stack(hashes, axis=-1), _int32(0x7FFFFFFF))
    return ops.mod(positive, _int32(num_slots))


def ngram_tags(contexts: Tensor, orders: Sequence[int]) -> Tensor:
    """Returns a second hash of the n-grams that end at each token.

    Args:
        contexts: see `ngram_slots`.
        orders: see `ngram_slots`.

    Returns:
        An int32 tensor of shape `(tokens, len(orders))`, nowhere zero.
    """
    seed = np.array(_TAG_SEED, "int64")
    tags = [murmur3(contexts[:, -order:], seed) for order in orders]
    stacked = ops.stack(tags, axis=-1)
    return ops.where(stacked == 0, _int32(1), stacked)


def are_whole(contexts: Tensor, orders: Sequence[int]) -> Tensor:
    """Whether the n-grams that end at each token lie within the text.

    Args:
        contexts: see `ngram_slots`. Ids are negative where there is no token.
        orders: see `ngram_slots`.

    Returns:
        A bool tensor of shape `(tokens, len(orders))`.
    """
    return ops.stack(
        [ops.all(contexts[:, -order:] >= 0, axis=-1) for order in orders],
        axis=-1,
    )


def murmur3(ids: Tensor, seeds: np.ndarray) -> Tensor:
    """Returns MurmurHash3 (x86, 32 bits) of some words.

    Args:
        ids: int32 tensor of shape `(..., words)`.
        seeds: int array that broadcasts with `ids[..., 0]`.

    Returns:
        An int32 tensor.
    """
    ids = ops.convert_to_tensor(ids, "int32")
    words = ids.shape[-1]
    hashed = _int32(seeds)
    for place in range(words):
        word = ids[..., place] * _int32(0xCC9E2D51)
        word = _rotate(word, 15) * _int32(0x1B873593)
        hashed = _rotate(ops.bitwise_xor(hashed, word), 13)
        hashed = hashed * _int32(5) + _int32(0xE6546B64)
    hashed = ops.bitwise_xor(hashed, _int32(4 * words))
    hashed = ops.bitwise_xor(hashed, _shift(hashed, 16)) * _int32(0x85EBCA6B)
    hashed = ops.bitwise_xor(hashed, _shift(hashed, 13)) * _int32(0xC2B2AE35)
    return ops.bitwise_xor(hashed, _shift(hashed, 16))


def _rotate(words: Tensor, bits: int) -> Tensor:
    left = ops.left_shift(words, _int32(bits))
    return ops.bitwise_or(left, _shift(words, 32 - bits))


def _shift(words: Tensor, bits: int) -> Tensor:
    """To the right, with zeros from the left."""
    shifted = ops.right_shift(words, _int32(bits))
    return ops.bitwise_and(shifted, _int32((1 << (32 - bits)) - 1))


def _int32(number: int | np.ndarray) -> Tensor:
    """The lowest 32 bits of an integer."""
    words = np.asarray(number, "int64").astype("uint32").view("int32")
    return ops.convert_to_tensor(words)
