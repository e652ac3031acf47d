"""Which tokens begin, or end, in the middle of a word."""

import base64
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
        size = int(tokenizer.vocabulary_size())
        tokens = [tokenizer.id_to_token(number) or "" for number in range(size)]
    except NotImplementedError:
        return None
    joined = getattr(tokenizer, "suffix_indicator", None)
    is_of_bytes = any(token.startswith("Ġ") for token in tokens)
    texts = [
        _text(token, is_of_bytes)
        if joined is None
        else _text_of_piece(token, joined)
        for token in tokens
    ]
    bits = np.array(
        [
            BEGINS * _is_in_word(text[:1]) + ENDS * _is_in_word(text[-1:])
            for text in texts
        ],
        "uint8",
    )
    packed = zlib.compress(bits.tobytes(), 9)
    return base64.b85encode(packed).decode("ascii")


def read_word_edges(text: str) -> np.ndarray:
    """Returns the bits of each token, an int32 array."""
    bits = zlib.decompress(base64.b85decode(text))
    return np.frombuffer(bits, "uint8").astype("int32")


def _is_in_word(character: str) -> bool:
    """Whether a character next to a name makes it a longer word."""
    return character.isalnum() and not any(
        first <= ord(character) <= last for first, last in _WITHOUT_SPACES
    )


def _text_of_piece(token: str, joined: str) -> str:
    """What a token of WordPiece stands for, with the space before it."""
    is_joined = token.startswith(joined)
    return token.removeprefix(joined) if is_joined else f" {token}"


def _text(token: str, is_of_bytes: bool) -> str:
    """What a token stands for, with the space before it."""
    if not is_of_bytes:
        # SentencePiece: <0x41> is a byte, and <s> has no text.
        return "" if token.startswith("<") else token.replace("▁", " ")
    if not all(character in _BYTES for character in token):
        return ""
    # A part of a character is neither a letter nor a digit.
    text = bytes(_BYTES[character] for character in token)
    return text.decode(errors="replace")


def _make_bytes() -> dict[str, int]:
    """The characters that stand for bytes, as in GPT-2."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [number for number in range(256) if number not in shown]
    return {
        **{chr(number): number for number in shown},
        **{chr(256 + place): number for place, number in enumerate(hidden)},
    }


_BYTES = _make_bytes()
