"""A memory that is addressed by hashes of n-grams of tokens."""

import math
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_pkm.layers.memory import Memory
from keras_pkm.layers.value_table import ValueTable
from keras_pkm.ops.arguments import integer
from keras_pkm.ops.arguments import positive_ints
from keras_pkm.ops.ngram_hashes import NGrams
from keras_pkm.ops.ngram_hashes import ngrams
from keras_pkm.ops.tensors import MemoryAccess
from keras_pkm.ops.tensors import Tensor


class Claim(NamedTuple):
    """What `NGramMemory.claim` did.

    Attributes:
        rows: int. The number of rows that now belong to the n-grams.
        lost: int. The number of their rows that other n-grams had claimed
            before.
    """

    rows: int
    lost: int


@keras.saving.register_keras_serializable("keras_pkm")
class NGramMemory(Memory):
    """A memory whose slots are hashes of the n-grams that end at a token.

    There is no search: the ids of a token and of those before it are hashed,

        slots = hash(ids of the last n tokens)      (for each n and each head)
        output = Σ_n Σ_heads values[slots]

    An n-gram that would begin before the text is not read. Hashes are
    MurmurHash3 of the ids, the same on all backends; different n-grams may have
    the same slot.

    With `gate="engram"`, the rows that a token reads are concatenated to e, and
    a gate scales them by how well they fit the token's x:

        s = ⟨RMS(e W_K), RMS(x)⟩ / √dim
        output = σ(sign(s) √max(|s|, 10⁻⁶)) · e W_V

    as in Engram, but without its causal convolution, which would need the reads
    of earlier tokens while text is generated.

    With `tags=True`, a row is read only by the n-gram for which `claim` has
    claimed it. Everywhere else the output is zero, so that teaching such a
    memory leaves the model exactly as it was wherever none of these n-grams
    occurs. Training it before any row is claimed raises an error, except on JAX
    in the `fit` of a model that is no task of this library.

    Args:
        num_slots: int. Number of slots. All n-grams share them.
        orders: tuple of int. The numbers n of tokens in an n-gram. Defaults to
            `(2, 3)`.
        num_heads: int. Number of hashes of each n-gram; each selects a slot.
            Defaults to `1`.
        gate: optional, `"engram"`. Defaults to none.
        tags: bool. Whether rows are read only by n-grams that have claimed
            them. Defaults to `False`.
        hash_seed: int. Memories with different seeds have different hashes.
            Defaults to `0`.
        value_dim: int. Width of the values. Defaults to the width of the
            inputs, or with a gate to that width divided by the number of rows
            that a token reads.
        **kwargs: further arguments of `keras_pkm.layers.Memory`.

    Call arguments: those of `keras_pkm.layers.Memory`. `token_ids` is needed:
        the ids of the tokens of the inputs. Models of `keras_pkm.models` pass
        them, also while they generate.

    Returns:
        What `keras_pkm.layers.Memory` returns. The weights of the memory
        access, of shape `(batch, length, num_heads, len(orders))`, are 1, or 0
        where a slot is not read.

    Example:

    >>> memory = keras_pkm.layers.NGramMemory(num_slots=1000, orders=(2, 3))
    >>> token_ids = np.array([[5, 6, 7, 5, 6]])
    >>> x = np.random.normal(size=(1, 5, 16))
    >>> outputs, (slots, weights) = memory(
    ...     x, token_ids=token_ids, return_memory_access=True
    ... )
    >>> outputs.shape
    TensorShape([1, 5, 16])
    >>> bool(slots[0, 1, 0, 0] == slots[0, 4, 0, 0])  # "5 6", both times
    True

    References:

    - [Cheng et al., 2026](https://arxiv.org/abs/2601.07372), Engram
    """

    def __init__(
        self,
        num_slots: int,
        orders: Iterable[int] = (2, 3),
        num_heads: int = 1,
        gate: str | None = None,
        tags: bool = False,
        hash_seed: int = 0,
        value_dim: int | None = None,
        **kwargs: Any,
    ):
        self.orders = check_orders(orders)
        if gate not in (None, "engram"):
            raise ValueError(
                f'`gate` must be "engram" or None. Received: gate={gate!r}.'
            )
        super().__init__(
            num_slots=num_slots,
            num_heads=num_heads,
            top_k=len(self.orders),
            value_dim=value_dim,
            **kwargs,
        )
        self.gate = gate
        self.tags = bool(tags)
        self.hash_seed = integer("hash_seed", hash_seed, least=0)
        self.context_size = max(self.orders)
        self.uses_inputs = gate is not None

    def value_width(self, dim: int) -> int:
        if self.gate is None:
            return super().value_width(dim)
        return self.value_dim or max(1, dim // (self.num_heads * self.top_k))

    def make_table(
        self, dim: int, name: str = "table", **options: Any
    ) -> ValueTable:
        return super().make_table(dim, name, tags=self.tags, **options)

    def _check_table(self, value_dim: int) -> None:
        super()._check_table(value_dim)
        if self.table.has_tags != self.tags:
            raise ValueError(
                "`table` must have tags if its memory has `tags=True`, and "
                f"none otherwise. Received: tags={self.tags}, and a table with "
                f"tags={self.table.has_tags}."
            )

    def address(
        self,
        tokens: Tensor,
        mask: Tensor | None,
        training: bool | None,
        *token_ids: Tensor,
    ) -> MemoryAccess:
        (contexts,) = token_ids
        if training:
            self.table.check_claimed()
        found = self._ngrams(contexts)
        is_read = found.are_whole[:, None]
        if self.tags:
            tags = ops.take(self.table.tags, found.slots, axis=0)
            is_read = is_read & (tags == found.tags[:, None])
        weights = ops.broadcast_to(is_read, ops.shape(found.slots))
        return found.slots, ops.cast(weights, "float32")

    def _ngrams(self, contexts: Any, lib: Any = ops) -> NGrams:
        return ngrams(
            contexts,
            self.orders,
            self.num_heads,
            self.num_slots,
            self.hash_seed,
            lib,
        )

    def read(
        self, slots: Tensor, weights: Tensor, implementation: str
    ) -> Tensor:
        if self.gate is None:
            return super().read(slots, weights, implementation)
        # A head of the table for each row, so that they are not summed.
        shape = (-1, self.num_heads * self.top_k, 1)
        rows = self.table(
            ops.reshape(slots, shape),
            ops.reshape(weights, shape),
            per_head=True,
            implementation=implementation,
        )
        return ops.reshape(rows, (-1, shape[1] * self.table.value_dim))

    def build_combine(self, dim: int) -> None:
        if self.gate is None:
            super().build_combine(dim)
            return
        width = self.num_heads * self.top_k * self.table.value_dim
        for name in ("key_projection", "output_projection"):
            dense = keras.layers.Dense(
                dim, use_bias=False, dtype=self.dtype_policy, name=name
            )
            dense.build((None, width))
            setattr(self, name, dense)
        for name in ("key_normalization", "input_normalization"):
            normalization = keras.layers.RMSNormalization(
                dtype="float32", name=name
            )
            normalization.build((None, dim))
            setattr(self, name, normalization)

    def combine(
        self, tokens: Tensor, reads: Tensor, training: bool | None
    ) -> Tensor:
        outputs = super().combine(tokens, reads, training)
        if self.gate is None:
            return outputs
        keys = self.key_normalization(self.key_projection(reads))
        fit = ops.sum(keys * self.input_normalization(tokens), axis=-1)
        fit = fit / math.sqrt(tokens.shape[-1])
        # The root has no finite slope at zero.
        root = ops.sqrt(ops.maximum(ops.abs(fit), 1e-6))
        gate = ops.sigmoid(ops.sign(fit) * root)
        return outputs * ops.cast(gate[:, None], outputs.dtype)

    def output_layers(self) -> list[keras.layers.Layer]:
        layers = super().output_layers()
        if self.gate is not None:
            layers += [self.key_projection, self.key_normalization]
            layers += [self.input_normalization]
        return layers

    def claim(
        self,
        token_ids: Sequence[int] | np.ndarray,
        span: tuple[int, int] | None = None,
        parts: bool = False,
    ) -> Claim:
        """Claims rows for n-grams of a text, which then read them.

        A row that another n-gram has already claimed stays with that n-gram.

        Args:
            token_ids: sequence of int. The ids of the text's tokens.
            span: optional. The positions of the n-gram's first token and of
                the token after its last. Defaults to the whole text.
            parts: bool. Whether to claim rows for all n-grams within the span
                that have one of the memory's `orders`, instead of for the span
                as one n-gram. Defaults to `False`.

        Returns:
            A tuple `(rows, lost)`: the number of rows that now belong to the
            n-grams, and the number of their rows that other n-grams had
            claimed before.

        Raises:
            ValueError: the memory has no tags or is not built; or the span has
                no n-gram of the memory's orders.

        Example:

        >>> memory = keras_pkm.layers.NGramMemory(100, (2, 3), tags=True)
        >>> memory.build((None, None, 16))
        >>> memory.claim([5, 6, 7, 8], span=(1, 4))
        Claim(rows=1, lost=0)
        """
        ids, orders = self._check_claim(token_ids, span, parts)
        contexts = np.full((len(ids), self.context_size), -1, "int32")
        for before in range(min(self.context_size, len(ids))):
            place = self.context_size - 1 - before
            contexts[before:, place] = ids[: len(ids) - before]
        if not parts:
            contexts = contexts[-1:]
        found = self._ngrams(contexts, np)
        claimed = found.are_whole & np.isin(self.orders, orders)
        owners = np.array(ops.convert_to_numpy(self.table.tags))
        rows, lost = set(), set()
        for token, order in np.argwhere(claimed):
            tag = found.tags[token, order]
            for slot in found.slots[token, :, order]:
                if owners[slot] in (0, tag):
                    owners[slot] = tag
                    rows.add((slot, tag))
                else:
                    lost.add((slot, tag))
        self.table.tags.assign(owners)
        return Claim(len(rows), len(lost))

    def _check_claim(
        self,
        token_ids: Sequence[int] | np.ndarray,
        span: tuple[int, int] | None,
        parts: bool,
    ) -> tuple[np.ndarray, tuple[int, ...]]:
        """The ids of the span, and the orders of the n-grams to claim."""
        if not (self.tags and self.built):
            raise ValueError(
                f"`claim` needs a built memory with `tags=True`. Received: "
                f"'{self.name}', with tags={self.tags}, built={self.built}."
            )
        ids = np.asarray(token_ids)
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or (ids < 0).any():
            raise ValueError(
                "`token_ids` must be a sequence of integers of at least 0. "
                f"Received: token_ids={token_ids!r}."
            )
        start, stop = (0, len(ids)) if span is None else span
        if not 0 <= start < stop <= len(ids):
            raise ValueError(
                "`span` must be the first token of an n-gram and the one "
                f"behind its last, within the {len(ids)} tokens. Received: "
                f"span={span!r}."
            )
        orders = tuple(
            order
            for order in self.orders
            if (order <= stop - start if parts else order == stop - start)
        )
        if not orders:
            raise ValueError(
                "`span` must contain an n-gram of the memory's orders, "
                f"{self.orders}. Received: span={(start, stop)!r}, of "
                f"{stop - start} tokens."
            )
        return ids[start:stop].astype("int32"), orders

    def addressing(self) -> dict[str, Any]:
        # Without tags as in earlier versions, which patches name.
        names = ("num_heads", "orders", "hash_seed", *["tags"] * self.tags)
        return {name: getattr(self, name) for name in names}

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["top_k"]
        return {
            **config,
            "orders": list(self.orders),
            "gate": self.gate,
            "tags": self.tags,
            "hash_seed": self.hash_seed,
        }


def check_orders(orders: Iterable[int]) -> tuple[int, ...]:
    """Returns numbers of tokens in an n-gram, ascending."""
    orders = tuple(positive_ints("orders", orders))
    if not orders or len(set(orders)) < len(orders):
        raise ValueError(
            "`orders` must be different numbers of tokens, at least one. "
            f"Received: orders={orders!r}."
        )
    return tuple(sorted(orders))
