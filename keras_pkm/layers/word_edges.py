"""Which tokens begin, or end, in the middle of a word."""

import base64
import codecs
import collections
import functools
import sys
import unicodedata
import zlib
from typing import Any

import numpy as np

# Bits of a token: it begins, or it ends, with a letter or a digit.
BEGINS, ENDS = 1, 2
# Scripts in which other words follow a name without a space: of Thailand, Laos,
# Myanmar, Cambodia, Korea, Japan and China.
_WITHOUT_SPACES = (
    *((0x0E00, 0x0EFF), (0x1000, 0x11FF), (0x1780, 0x17FF)),
    *((0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3040, 0x318F)),
    *((0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
    *((0xA960, 0xA97F), (0xAC00, 0xD7FF), (0xF900, 0xFAFF)),
    *((0xFF66, 0xFFDC), (0x20000, 0x3FFFF)),
)


def word_edges(tokenizer: Any) -> str | None:
    """Returns which tokens of a tokenizer begin or end in a word.

    Args:
        tokenizer: `keras_hub.tokenizers.Tokenizer` of byte pairs, of
            SentencePiece, or of WordPiece.

    Returns:
        A text for the config of a layer; `None` if the tokenizer does not tell
        its tokens.
    """
    try:
        tokens = _tokens_of(tokenizer)
    except NotImplementedError:
        return None
    joined = getattr(tokenizer, "suffix_indicator", None)
    starts = {token[:1] for token in tokens}
    if joined is not None:
        edges = [_edges_of(_text_of_piece(token, joined)) for token in tokens]
    elif "Ġ" in starts and "▁" not in starts:
        edges = [_edges_of_bytes(token) for token in tokens]
    else:
        edges = [_edges_of(_text(token)) for token in tokens]
    bits = np.array(edges, "uint8")
    packed = zlib.compress(bits.tobytes(), 9)
    return base64.b85encode(packed).decode("ascii")


def read_word_edges(text: str) -> np.ndarray:
    """Returns the bits of each token, an int32 array."""
    bits = zlib.decompress(base64.b85decode(text))
    return np.frombuffer(bits, "uint8").astype("int32")


def _tokens_of(tokenizer: Any) -> list[str]:
    """The tokens of all ids, some of which may have none."""
    vocabulary = getattr(tokenizer, "vocabulary", None)
    if isinstance(vocabulary, dict):
        tokens = {number: token for token, number in vocabulary.items()}
        return [tokens.get(number, "") for number in range(max(tokens) + 1)]
    size = int(tokenizer.vocabulary_size())
    return [tokenizer.id_to_token(number) or "" for number in range(size)]


def _edges_of(text: str) -> int:
    return BEGINS * _is_in_word(text[:1]) + ENDS * _is_in_word(text[-1:])


def _is_in_word(character: str) -> bool:
    """Whether a character next to a name makes it a longer word."""
    # Marks are vowels of Indian scripts, and accents.
    is_part = character.isalnum() or (
        bool(character) and unicodedata.category(character).startswith("M")
    )
    return is_part and not any(
        first <= ord(character) <= last for first, last in _WITHOUT_SPACES
    )


def _text_of_piece(token: str, joined: str) -> str:
    """What a token of WordPiece stands for, with the space before it."""
    is_joined = token.startswith(joined)
    return token.removeprefix(joined) if is_joined else f" {token}"


def _text(token: str) -> str:
    """What a token of SentencePiece stands for, with the space before it."""
    # <0x41> is a byte, and <s> has no text.
    return "" if token.startswith("<") else token.replace("▁", " ")


def _edges_of_bytes(token: str) -> int:
    """The edges of a token of bytes, which may end within a character."""
    if not all(character in _BYTES for character in token):
        return 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(bytes(_BYTES[character] for character in token))
    cut, _ = decoder.getstate()
    if not cut:
        return _edges_of(text)
    is_letter = cut in _cut_letters()
    begins = _is_in_word(text[:1]) if text else is_letter
    return BEGINS * begins + ENDS * is_letter


@functools.cache
def _cut_letters() -> frozenset[bytes]:
    """The first bytes of characters of which most are in words."""
    counts: collections.Counter[bytes] = collections.Counter()
    for character in map(chr, range(0x80, sys.maxunicode + 1)):
        # Those that are in no use have the category C.
        if not unicodedata.category(character).startswith("C"):
            spelled = character.encode()
            vote = 1 if _is_in_word(character) else -1
            counts.update({spelled[:n]: vote for n in range(1, len(spelled))})
    return frozenset(cut for cut, votes in counts.items() if votes > 0)


def _make_bytes() -> dict[str, int]:
    """The characters that stand for bytes, as in GPT-2."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [number for number in range(256) if number not in shown]
    return {
        **{chr(number): number for number in shown},
        **{chr(256 + place): number for place, number in enumerate(hidden)},
    }


_BYTES = _make_bytes()
