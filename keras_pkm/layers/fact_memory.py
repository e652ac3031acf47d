"""A memory of facts about subjects, for a model that is finished."""

import zlib
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_pkm.layers.memory import Memory
from keras_pkm.layers.ngram_memory import check_orders
from keras_pkm.layers.token_ids import current_token_ids
from keras_pkm.layers.token_ids import known_ids
from keras_pkm.layers.token_ids import last_ids
from keras_pkm.layers.value_table import ValueTable
from keras_pkm.layers.word_edges import BEGINS
from keras_pkm.layers.word_edges import ENDS
from keras_pkm.layers.word_edges import read_word_edges
from keras_pkm.layers.word_edges import word_edges
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.ngram_hashes import murmur3
from keras_pkm.ops.tensors import MemoryAccess
from keras_pkm.ops.tensors import Tensor

_SLOT_SEED, _OWNER_SEED = 0, 0x7F4A7C15
_LONGEST = 16
# Rows of a subject whose biases are looked up at a token.
_COMPETING = 4


@keras.saving.register_keras_serializable("keras_pkm")
class FactMemory(Memory):
    """A memory whose slots are facts: a subject, and what is asked of it.

    A subject is an n-gram of token ids. Each token x is about the last subject
    that ended before it, at most `window` tokens ago, and about the longest one
    if several ended at the same token. Part of a longer word, such as Bob in
    Bobby, is not a subject. Each relation, that is, each kind of question, has
    a key, and each row of a subject has the key of the question that it
    answers:

        s = ⟨key, x⟩ + bias of the key + bias of the row    (for each row)
        output = value of the row with the largest s        if it is above 0

    In all other cases the output is exactly zero. (Of more than four rows, only
    the four whose keys fit best compete.) So a model to which this memory is
    added stays as it was, bit for bit, wherever no subject occurs or something
    else is asked about one. Facts taught later about other subjects leave
    earlier facts unchanged, unless the later subject occurs between the earlier
    one and its question, or in its value. (Compiled in bfloat16, a model may
    round differently once it has a memory.)

    The table has a row for each key, and one for each pair of a subject and a
    key. The last column of each row is its bias. At first all rows are free:
    `claim_key` and `claim` assign them, and a row's tag identifies its owner.
    `keras_pkm.teaching.FactTeacher` claims rows, fits the keys, and finds the
    values.

    Args:
        num_slots: int. Number of rows of the table. For each tokenization of
            the subject, a fact needs one row for each token of its value.
        num_keys: int. Number of rows that are keys, at most 256. A relation
            needs as many as its longest value has tokens. Defaults to `64`.
        orders: tuple of int. The numbers of tokens that a subject may have.
            Defaults to 1 to 16.
        window: int. The number of tokens behind a subject that are about it.
            Defaults to `128`.
        reach: int. The number of consecutive slots that are searched for the
            rows of a subject. Defaults to `32`.
        word_edges: optional str. Encodes which tokens begin or end in the
            middle of a word. `keras_pkm.models.add_memory` takes it from a
            task's tokenizer. Without it, a subject is also found in longer
            words that begin or end with its tokens. Defaults to `None`.
        **kwargs: further arguments of `keras_pkm.layers.Memory`.

    Call arguments: those of `keras_pkm.layers.Memory`. `token_ids` is needed:
        the ids of the tokens of the inputs. Models of `keras_pkm.models` pass
        them, also while they generate.

    Returns:
        What `keras_pkm.layers.Memory` returns. The weights of the memory
        access, of shape `(batch, length, 1, 1)`, are 1, or 0 where nothing is
        read.

    Example:

    >>> memory = keras_pkm.layers.FactMemory(100, num_keys=4)
    >>> token_ids = np.array([[5, 6, 7, 8]])
    >>> x = np.random.normal(size=(1, 4, 16))
    >>> memory(x, token_ids=token_ids).shape
    TensorShape([1, 4, 16])
    >>> key = memory.claim_key("city")
    >>> slot = memory.claim([6, 7], key)
    >>> memory.write([slot, key], np.ones((2, 17)))  # this key's bias is 1
    >>> _, (_, weights) = memory(
    ...     0 * x, token_ids=token_ids, return_memory_access=True
    ... )
    >>> weights[0, :, 0, 0].numpy()
    array([0., 0., 0., 1.], dtype=float32)

    References:

    - [Févry et al., 2020](https://arxiv.org/abs/2004.07202), Entities as
      Experts, whose memory has a row for each entity
    """

    def __init__(
        self,
        num_slots: int,
        num_keys: int = 64,
        orders: Iterable[int] = range(1, _LONGEST + 1),
        window: int = 128,
        reach: int = 32,
        word_edges: str | None = None,
        **kwargs: Any,
    ):
        self.word_edges = word_edges
        self._edges = (
            None if word_edges is None else read_word_edges(word_edges)
        )
        self.num_keys = positive_int("num_keys", num_keys)
        self.orders = check_orders(orders)
        self.window = positive_int("window", window)
        self.reach = positive_int("reach", reach)
        if self.num_keys > 256:
            raise ValueError(
                f"`num_keys` must be at most 256. Received: {num_keys}."
            )
        if num_slots < self.num_keys + self.reach:
            raise ValueError(
                "`num_slots` must be at least `num_keys + reach`, because the "
                f"keys are rows, too. Received: num_slots={num_slots}, "
                f"num_keys={num_keys}, reach={reach}."
            )
        super().__init__(num_slots=num_slots, num_heads=1, top_k=1, **kwargs)
        if self.value_dim is not None:
            raise ValueError(
                "`value_dim` must be None: values have the width of the "
                f"inputs. Received: value_dim={self.value_dim}."
            )
        # The lowest bits of a tag are the number of the key.
        self._key_bits = _key_bits(self.num_keys)
        # A token, and before its window the longest subject and one more.
        self.context_size = 1 + self.window + max(self.orders)

    def value_width(self, dim: int) -> int:
        return dim + 1

    def make_table(
        self, dim: int, name: str = "table", **options: Any
    ) -> ValueTable:
        return super().make_table(dim, name, tags=True, **options)

    def _contexts(
        self, inputs: Tensor, token_ids: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, ...]:
        """The first slot and the owner of what each token may read."""
        if token_ids is None:
            token_ids = current_token_ids(self.name)
        found = self._subjects(known_ids(inputs, token_ids, mask))
        length = ops.shape(inputs)[1]
        return tuple(
            ops.reshape(each[:, ops.shape(each)[1] - length :], (-1,))
            for each in found
        )

    def _subjects(self, token_ids: Tensor) -> tuple[Tensor, Tensor]:
        """The first slot and the owner of the subject at each token.

        The owner is zero where there is no subject.
        """
        batch, length = ops.shape(token_ids)[0], ops.shape(token_ids)[1]
        size, orders = max(self.orders) + 1, len(self.orders)
        contexts = last_ids(token_ids[..., None], token_ids, size)
        contexts = ops.reshape(contexts, (-1, size))
        starts, owners = self._rows_of(contexts)
        tags = ops.take(self.table.tags, self._slots(starts), axis=0)
        stands = self._owner(tags) == owners[..., None]
        stands = ops.any(stands, axis=-1)
        stands = stands & ops.stack(
            [contexts[:, -order] >= 0 for order in self.orders], axis=-1
        )
        # Whether each of these tokens is in one word with the one before.
        joins = self._joins(contexts[:, :-1], contexts[:, 1:])
        stands = stands & ~ops.stack(
            [joins[:, -order] for order in self.orders], axis=-1
        )
        # The longest n-gram that ends at a token, and the last such token.
        longest = ops.full_like(owners[:, 0], -1)
        for place in range(orders):
            longest = ops.where(stands[:, place], place, longest)
        longest = ops.reshape(longest, (batch, length))
        position = ops.arange(length, dtype="int32") * orders
        codes = ops.where(longest >= 0, position + longest, -1)
        # Each token may read what ended before it. At the end itself, it is not
        # known yet whether the word goes on.
        goes_on = ops.reshape(joins[:, -1], (batch, length))[:, 1:]
        ended = ops.where(goes_on, -1, codes[:, :-1])
        ended = ops.pad(ended, [[0, 0], [1, 0]], constant_values=-1)
        # There may be no token at all.
        codes = _latest(ended[:, :length], self.window)
        at = ops.maximum(codes, 0)
        flat = (batch, length * orders)
        start, owner = (
            ops.take_along_axis(ops.reshape(each, flat), at, axis=1)
            for each in (starts, owners)
        )
        return start, ops.where(codes >= 0, owner, 0)

    def _joins(self, first: Tensor, second: Tensor) -> Tensor:
        """Whether a token and the next one are parts of the same word."""
        edges = self._edges
        if edges is None:
            return ops.zeros_like(first, "bool")
        bits, count = ops.convert_to_tensor(edges), len(edges)

        def has(ids: Tensor, bit: int) -> Tensor:
            place = ops.clip(ids, 0, count - 1)
            found = ops.bitwise_and(ops.take(bits, place, axis=0), bit) != 0
            return found & (ids >= 0) & (ids < count)

        return has(first, ENDS) & has(second, BEGINS)

    def suited_to(self, tokenizer: Any) -> "Memory":
        if tokenizer is None or self.word_edges is not None:
            return self
        config = {**self.get_config(), "word_edges": word_edges(tokenizer)}
        return type(self).from_config(config)

    def _rows_of(self, contexts: Any, lib: Any = ops) -> tuple[Any, Any]:
        """The first slot and the owner of the n-grams that end each row.

        Both have the shape `(rows, len(orders))`.
        """
        seeds = np.array([_SLOT_SEED, _OWNER_SEED], "int64")
        hashes = murmur3(contexts, self.orders, seeds, lib)
        room = self.num_slots - self.num_keys - self.reach + 1
        int32 = _numbers(lib)
        positive = lib.bitwise_and(hashes[:, 0], int32(0x7FFFFFFF))
        starts = lib.mod(positive, int32(room)) + int32(self.num_keys)
        owners = self._owner(hashes[:, 1], lib)
        return starts, lib.where(owners == 0, int32(-(2**31)), owners)

    def _owner(self, tags: Any, lib: Any = ops) -> Any:
        return lib.bitwise_and(tags, _numbers(lib)(-(2**self._key_bits)))

    def _slots(self, starts: Tensor) -> Tensor:
        return starts[..., None] + ops.arange(self.reach, dtype="int32")

    def address(
        self,
        tokens: Tensor,
        mask: Tensor | None,
        training: bool | None,
        *token_ids: Tensor,
    ) -> MemoryAccess:
        starts, owners = token_ids
        if training:
            self.table.check_claimed()
        slots = self._slots(starts)
        tags = ops.take(self.table.tags, slots, axis=0)
        is_own = (self._owner(tags) == owners[:, None]) & (owners != 0)[:, None]
        # Another table may have a tag of a key that this memory lacks.
        key = ops.bitwise_and(tags, 2**self._key_bits - 1)
        is_own = is_own & (key < self.num_keys)
        fits = ops.take_along_axis(
            self._fits(tokens), ops.where(is_own, key, 0), axis=1
        )
        fits = ops.where(is_own, fits, -np.inf)
        fits, places = ops.top_k(fits, min(_COMPETING, self.reach))
        slots = ops.take_along_axis(slots, places, axis=1)
        biases = self._rows(ops.reshape(slots, (-1, 1, 1)))[:, -1]
        fits = fits + ops.reshape(biases, ops.shape(fits))
        best = ops.cast(ops.argmax(fits, axis=1)[:, None], "int32")
        slot = ops.take_along_axis(slots, best, axis=1)
        weight = ops.take_along_axis(fits, best, axis=1) > 0
        return slot[:, None], ops.cast(weight, "float32")[:, None]

    def _fits(self, tokens: Tensor) -> Tensor:
        """How well each key fits each token."""
        numbers = ops.arange(self.num_keys, dtype="int32")
        keys = self._rows(numbers[:, None, None])
        tokens = ops.cast(tokens, "float32")
        return ops.matmul(tokens, ops.transpose(keys[:, :-1])) + keys[:, -1]

    def _rows(self, slots: Tensor) -> Tensor:
        """Single rows, of slots of shape `(rows, 1, 1)`."""
        weights = ops.ones_like(slots, "float32")
        rows = self.table(slots, weights, implementation="portable")
        return ops.stop_gradient(rows)

    def build_combine(self, dim: int) -> None:
        self.output_projection = None

    def combine(
        self, tokens: Tensor, reads: Tensor, training: bool | None
    ) -> Tensor:
        return reads[:, :-1]

    def find_key(self, name: str) -> int | None:
        """Returns the number of a key, or `None` if it is not claimed.

        Args:
            name: str. What the key stands for, such as a relation.
        """
        tags = self._tags()[: self.num_keys]
        found = np.flatnonzero(tags == _tag_of(name))
        return int(found[0]) if len(found) else None

    def claim_key(self, name: str) -> int:
        """Returns the number of a key, which is claimed if it is not yet.

        Args:
            name: str. What the key stands for, such as a relation.

        Raises:
            ValueError: all keys are claimed by other names.
        """
        found = self.find_key(name)
        if found is not None:
            return found
        tags = self._tags()
        free = np.flatnonzero(tags[: self.num_keys] == 0)
        if not len(free):
            raise ValueError(
                f"`num_keys` must be above {self.num_keys}, because all keys "
                f"are claimed. Received: '{name}' as a further one."
            )
        tags[free[0]] = _tag_of(name)
        self.table.tags.assign(tags)
        return int(free[0])

    def find(self, token_ids: Sequence[int] | np.ndarray, key: int) -> int:
        """Returns the slot of a subject and a key, or -1 if there is none.

        Args:
            token_ids: sequence of int. The ids of the subject's tokens.
            key: int. The number of the key.
        """
        start, tag = self._row_of(token_ids, key)
        tags = self._tags()[start : start + self.reach]
        found = np.flatnonzero(tags == tag)
        return int(start + found[0]) if len(found) else -1

    def claim(self, token_ids: Sequence[int] | np.ndarray, key: int) -> int:
        """Gives a row to a subject and a key, unless they have one.

        Args:
            token_ids: sequence of int. The ids of the subject's tokens.
            key: int. The number of the key, from `claim_key`.

        Returns:
            The slot of the row.

        Raises:
            ValueError: the subject has another number of tokens than the
                memory's `orders`, or no slot within its reach is free.
        """
        found = self.find(token_ids, key)
        if found >= 0:
            return found
        start, tag = self._row_of(token_ids, key)
        tags = self._tags()
        free = np.flatnonzero(tags[start : start + self.reach] == 0)
        if not len(free):
            owners = self._owner(tags[start : start + self.reach], np)
            if (owners == self._owner(np.int32(tag), np)).all():
                raise ValueError(
                    f"`reach` must be above {self.reach}, the number of rows "
                    "that a subject can have. Received: a subject that has as "
                    "many, and is to get a further one."
                )
            taken = int((tags[self.num_keys :] != 0).sum())
            raise ValueError(
                f"`num_slots` must be above {self.num_slots}: {taken} rows are "
                f"claimed, and none of the {self.reach} that a subject can "
                f"have is free. Twice as many slots would do."
            )
        tags[start + free[0]] = tag
        self.table.tags.assign(tags)
        return int(start + free[0])

    def release(self, slots: Sequence[int]) -> None:
        """Frees claimed rows, and fills them with zeros.

        Args:
            slots: sequence of int.

        Raises:
            ValueError: a row that remains needs the key of one of these.
        """
        rows = self._checked(slots)
        tags = self._tags()
        tags[rows] = 0
        self.check_tags(tags)
        self.write(rows, np.zeros((len(rows), self.table.value_dim)))
        self.table.tags.assign(tags)

    def write(self, slots: Sequence[int] | np.ndarray, rows: Any) -> None:
        """Replaces rows of the table.

        Args:
            slots: sequence of int, all different.
            rows: array of shape `(len(slots), dim + 1)`. The last column is the
                bias.
        """
        values = self._values()
        values[self._checked(slots)] = rows
        self.table.values.assign(values)

    def rows(self, slots: Sequence[int] | np.ndarray) -> np.ndarray:
        """Returns rows of the table, of shape `(len(slots), dim + 1)`.

        Args:
            slots: sequence of int.
        """
        return self._values()[self._checked(slots)]

    def _checked(self, slots: Sequence[int] | np.ndarray) -> np.ndarray:
        rows = np.asarray(slots, "int64")
        if ((rows < 0) | (rows >= self.num_slots)).any():
            raise ValueError(
                f"`slots` must be from 0 to {self.num_slots - 1}. Received: "
                f"slots={slots}."
            )
        return rows

    def addressing(self) -> dict[str, Any]:
        names = ("num_keys", "orders", "window", "reach", "word_edges")
        return {name: getattr(self, name) for name in names}

    def needed_rows(self, slots: np.ndarray, tags: np.ndarray) -> np.ndarray:
        rows = tags[slots[slots >= self.num_keys]]
        return np.unique(_keys_of(rows, self.num_keys)).astype("int64")

    def unread_row(self, width: int) -> np.ndarray:
        row = super().unread_row(width)
        # A bias with which it never fits best, and which bfloat16 has, too.
        row[-1] = -(2.0**20)
        return row

    def check_tags(self, tags: np.ndarray) -> None:
        check_keys(tags, self.num_keys)

    def _row_of(
        self, token_ids: Sequence[int] | np.ndarray, key: int
    ) -> tuple[int, int]:
        """The first slot that a row may have, and its tag."""
        ids = np.asarray(token_ids)
        if not self.built:
            raise ValueError(
                f"'{self.name}' must be built before its rows are claimed."
            )
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or (ids < 0).any():
            raise ValueError(
                "`token_ids` must be a sequence of integers of at least 0. "
                f"Received: token_ids={token_ids!r}."
            )
        if len(ids) not in self.orders:
            raise ValueError(
                "`token_ids` must be a subject of as many tokens as `orders` "
                f"has, {self.orders}. Received: {len(ids)} tokens."
            )
        if not 0 <= key < self.num_keys:
            raise ValueError(
                f"`key` must be from 0 to {self.num_keys - 1}. Received: {key}."
            )
        context = np.full((1, max(self.orders)), -1, "int32")
        context[0, -len(ids) :] = ids
        starts, owners = self._rows_of(context, np)
        order = self.orders.index(len(ids))
        return int(starts[0, order]), int(owners[0, order]) | key

    def _values(self) -> np.ndarray:
        return np.array(ops.convert_to_numpy(self.table.values))

    def _tags(self) -> np.ndarray:
        return np.array(ops.convert_to_numpy(self.table.tags))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for fixed in ("num_heads", "top_k", "value_dim"):
            del config[fixed]
        return {
            **config,
            "num_keys": self.num_keys,
            "orders": list(self.orders),
            "window": self.window,
            "reach": self.reach,
            "word_edges": self.word_edges,
        }


def check_keys(tags: np.ndarray, num_keys: int) -> None:
    """Checks that the rows of facts have the keys of their relations.

    Args:
        tags: int32 array of shape `(num_slots,)`.
        num_keys: The number of keys, the first rows.

    Raises:
        ValueError: a row has a key that is not claimed.
    """
    keys = np.unique(_keys_of(tags[num_keys:], num_keys))
    if (tags[keys] == 0).any():
        raise ValueError(
            "Rows of facts must have the keys of their relations. Received: a "
            "change that takes the key of other facts away: revert the later "
            "patches first, or release these facts, too."
        )


def _keys_of(tags: np.ndarray, num_keys: int) -> np.ndarray:
    """The numbers of the keys of rows that are claimed."""
    return tags[tags != 0] & (2 ** _key_bits(num_keys) - 1)


def _key_bits(num_keys: int) -> int:
    return max(1, (num_keys - 1).bit_length())


def _latest(codes: Tensor, window: int) -> Tensor:
    """The largest of the last `window` entries at each place of a row."""
    seen = 1
    while seen < window:
        shift = min(seen, window - seen)
        padded = ops.pad(codes, [[0, 0], [shift, 0]], constant_values=-1)
        codes = ops.maximum(codes, padded[:, :-shift])
        seen += shift
    return codes


def _tag_of(name: str) -> int:
    # Never zero, which is nobody's.
    return (zlib.crc32(name.encode()) | 1) - 2**31


def _numbers(lib: Any) -> Any:
    """Makes int32 numbers for a library."""
    if lib is np:
        return np.int32
    return lambda number: ops.convert_to_tensor(number, "int32")
