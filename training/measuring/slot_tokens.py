"""Which tokens read which slots."""

import dataclasses

import keras_hub
import numpy as np


@dataclasses.dataclass(frozen=True)
class TypicalToken:
    """A token that reads a slot more than others do.

    Attributes:
        token: As the vocabulary has it.
        share: Of the slot's top-1 reads, how many are this token's.
        lift: How many times that is its share of all tokens.
    """

    token: str
    share: float
    lift: float


@dataclasses.dataclass(frozen=True)
class SlotReaders:
    """Who reads a slot.

    Attributes:
        slot: Its number.
        reads: How often it was the best of a head, in the text that was kept.
        tokens: The most typical `TypicalToken`s, first the most telling.
        contexts: Places where the most typical of them reads it: the text
            before, the token, the text behind.
    """

    slot: int
    reads: int
    tokens: list[TypicalToken]
    contexts: list[tuple[str, str, str]]


def find_readers(
    token_ids: np.ndarray,
    is_token: np.ndarray,
    top1: np.ndarray,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    *,
    num_slots: int = 20,
    num_tokens: int = 5,
    num_contexts: int = 3,
    width: int = 8,
) -> list[SlotReaders]:
    """Returns the slots that are read most, and who reads them.

    Tokens are ranked by what they add to the divergence between the tokens of
    a slot and all tokens, p ln(p / q): frequent in the slot, and more so than
    elsewhere.

    Args:
        token_ids: int array of shape `(rows, length)`.
        is_token: bool array of the same shape, false at padding.
        top1: int array of shape `(rows, length, num_heads)`.
        tokenizer: keras-hub's.
        num_slots: How many slots.
        num_tokens: How many tokens of each.
        num_contexts: How many places of each.
        width: Tokens of a context on each side.
    """
    heads = top1.shape[-1]
    slots = top1[is_token].reshape(-1)
    readers = np.repeat(token_ids[is_token], heads)
    everywhere = np.bincount(token_ids[is_token])
    most_read = np.argsort(-np.bincount(slots), kind="stable")[:num_slots]
    found = []
    for slot in most_read.tolist():
        counts = np.bincount(readers[slots == slot], minlength=len(everywhere))
        reads = int(counts.sum())
        if not reads:
            break
        p, q = counts / reads, everywhere / everywhere.sum()
        ids = np.flatnonzero(counts)
        telling = p[ids] * np.log(p[ids] / q[ids])
        ids = ids[np.argsort(-telling, kind="stable")][:num_tokens]
        places = np.argwhere(
            is_token & (top1 == slot).any(-1) & (token_ids == ids[0])
        )
        chosen = np.linspace(0, len(places) - 1, num_contexts).astype(int)
        found.append(
            SlotReaders(
                slot,
                reads,
                [
                    TypicalToken(
                        tokenizer.id_to_token(int(i)),
                        float(p[i]),
                        float(p[i] / q[i]),
                    )
                    for i in ids
                ],
                [
                    _context(token_ids, is_token, row, place, width, tokenizer)
                    for row, place in places[np.unique(chosen)]
                ],
            )
        )
    return found


def _context(token_ids, is_token, row, place, width, tokenizer):
    ids = token_ids[row][: is_token[row].sum()]
    first = max(place - width, 0)
    parts = (ids[first:place], ids[place : place + 1], ids[place + 1 :][:width])
    return tuple(_text_of(part, tokenizer) for part in parts)


def _text_of(ids, tokenizer):
    return tokenizer.detokenize(ids) if len(ids) else ""
