"""Which tokens begin, or end, in the middle of a word."""

import base64
import zlib
from typing import Any

import numpy as np

# Bits of a token: it begins, or it ends, with a letter or a digit.
BEGINS, ENDS = 1, 2


def word_edges(tokenizer: Any) -> str | None:
    """Returns which tokens of a tokenizer begin or end in a word.

    Args:
        tokenizer: `keras_hub.tokenizers.Tokenizer` of byte pairs, or of
            SentencePiece.

    Returns:
        A text for the config of a layer; `None` if the tokenizer does not tell
        its tokens.
    """
    try:
        size = int(tokenizer.vocabulary_size())
        tokens = [tokenizer.id_to_token(number) or "" for number in range(size)]
    except NotImplementedError:
        return None
    is_of_bytes = any(token.startswith("Ġ") for token in tokens)
    texts = [_text(token, is_of_bytes) for token in tokens]
    bits = np.array(
        [
            BEGINS * text[:1].isalnum() + ENDS * text[-1:].isalnum()
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
