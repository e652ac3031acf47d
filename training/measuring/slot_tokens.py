"""Finds the tokens that read each slot."""

import dataclasses

import keras_hub
import numpy as np


@dataclasses.dataclass(frozen=True)
class TypicalToken:
    """A token that reads a slot more than others do."""

    # The token in the vocabulary.
    token: str
    # The token's share of the slot's top-1 reads.
    share: float
    # That share, divided by the token's share of all tokens.
    lift: float


@dataclasses.dataclass(frozen=True)
class SlotReaders:
    """The tokens that read a slot."""

    # The slot's number.
    slot: int
    # How often it was a head's best slot in the kept text.
    reads: int
    # The most typical `TypicalToken`s, the most typical one first.
    tokens: list[TypicalToken]
    # Occurrences of the most typical token that read the slot: the text before,
    # the token, the text after.
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
    """Returns the slots that are read most, with the tokens that read them.

    Tokens are ranked by their part p ln(p / q) of the divergence between the
    tokens of a slot and all tokens. It is high for tokens that are frequent in
    the slot and rarer elsewhere.
    """
    heads = top1.shape[-1]
    slots = top1[is_token].reshape(-1)
    readers = np.repeat(token_ids[is_token], heads)
    slots, readers = slots[slots >= 0], readers[slots >= 0]
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


def _context(
    token_ids: np.ndarray,
    is_token: np.ndarray,
    row: int,
    place: int,
    width: int,
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> tuple[str, str, str]:
    ids = token_ids[row][: is_token[row].sum()]
    first = max(place - width, 0)
    parts = (ids[first:place], ids[place : place + 1], ids[place + 1 :][:width])
    before, token, after = (_text_of(part, tokenizer) for part in parts)
    return before, token, after


def _text_of(ids: np.ndarray, tokenizer: keras_hub.tokenizers.Tokenizer) -> str:
    return tokenizer.detokenize(ids) if len(ids) else ""
