"""Hashes of n-grams of token ids, the same on all backends.

They are MurmurHash3 (x86, 32 bits) of the ids as 32-bit words, from the last
one to the first, so that the n-grams that end at a token share their work.
Backends do not agree on unsigned integers and on int64: all of it is int32,
whose products and sums wrap around.
"""

from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
from keras import ops

from keras_pkm.ops.tensors import Tensor

# Of a seed of its own, a tag does not follow from the slot.
_TAG_SEED = 0x7F4A7C15


class NGrams(NamedTuple):
    """The n-grams that end at each token.

    Attributes:
        slots: int32 tensor of shape `(tokens, num_heads, len(orders))`.
        tags: int32 tensor of shape `(tokens, len(orders))`, nowhere zero: a
            second hash.
        are_whole: bool tensor of the same shape, false where an n-gram would
            begin before the text, or have padding in it.
    """

    slots: Tensor
    tags: Tensor
    are_whole: Tensor


def ngrams(
    contexts: Tensor,
    orders: Sequence[int],
    num_heads: int,
    num_slots: int,
    seed: int,
    lib: Any = ops,
) -> NGrams:
    """Returns the hashes of the n-grams that end at each token.

    Args:
        contexts: int32 tensor of shape `(tokens, size)`: the ids of each token
            and of those before it, in the order of the text; negative where
            there is no token.
        orders: The numbers n of tokens in an n-gram, ascending, at most `size`.
        num_heads: The number of slots of each n-gram.
        num_slots: The number of slots of the table.
        seed: Other seeds give other slots.
        lib: `keras.ops`, or numpy for arrays outside of steps.
    """
    seeds = np.arange(num_heads, dtype="int64") + seed * num_heads
    hashes = murmur3(contexts, orders, np.append(seeds, _TAG_SEED), lib)
    positive = lib.bitwise_and(hashes[:, :-1], _int32(0x7FFFFFFF, lib))
    tags = hashes[:, -1]
    return NGrams(
        lib.mod(positive, _int32(num_slots, lib)),
        lib.where(tags == 0, _int32(1, lib), tags),
        lib.stack(
            [lib.all(contexts[:, -order:] >= 0, axis=-1) for order in orders],
            axis=-1,
        ),
    )


def murmur3(
    contexts: Tensor, orders: Sequence[int], seeds: np.ndarray, lib: Any = ops
) -> Tensor:
    """Returns MurmurHash3 of the last n words of each row, last word first.

    Args:
        contexts: int32 tensor of shape `(rows, size)`.
        orders: The numbers n of words, ascending.
        seeds: int array of shape `(seeds,)`.
        lib: `keras.ops`, or numpy.

    Returns:
        An int32 tensor of shape `(rows, len(seeds), len(orders))`.
    """
    hashed, found = _int32(seeds[None], lib), []
    for order in range(1, max(orders) + 1):
        word = contexts[:, -order, None] * _int32(0xCC9E2D51, lib)
        word = _rotate(word, 15, lib) * _int32(0x1B873593, lib)
        hashed = _rotate(lib.bitwise_xor(hashed, word), 13, lib)
        hashed = hashed * _int32(5, lib) + _int32(0xE6546B64, lib)
        if order in orders:
            found.append(hashed)
    lengths = _int32(4 * np.array(orders), lib)
    hashed = lib.bitwise_xor(lib.stack(found, axis=-1), lengths)
    for bits, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = lib.bitwise_xor(hashed, _shift(hashed, bits, lib))
        hashed = hashed * _int32(factor, lib)
    return lib.bitwise_xor(hashed, _shift(hashed, 16, lib))


def _rotate(words: Tensor, bits: int, lib: Any) -> Tensor:
    left = lib.left_shift(words, _int32(bits, lib))
    return lib.bitwise_or(left, _shift(words, 32 - bits, lib))


def _shift(words: Tensor, bits: int, lib: Any) -> Tensor:
    """To the right, with zeros from the left."""
    shifted = lib.right_shift(words, _int32(bits, lib))
    return lib.bitwise_and(shifted, _int32((1 << (32 - bits)) - 1, lib))


def _int32(number: int | np.ndarray, lib: Any) -> Tensor:
    """The lowest 32 bits of an integer, as a tensor or an array."""
    words = np.asarray(number, "int64").astype("uint32").view("int32")
    return words if lib is np else ops.convert_to_tensor(words)
