"""Turns text into tokens and their positions, in training and serving.

Call `tokenize` and `tokenize_with_offsets` in a `tf.function`. Their graphs are
portable.
"""

import re

import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text

from keras_pkm.text.transformers_tokenizers import TransformersTokenizer

# keras-hub's patterns for the boundaries of words.
from keras_hub.src.tokenizers.word_piece_tokenizer import (  # isort: skip
    CJK_REGEX,
    PUNCTUATION_AND_CJK_REGEX,
    PUNCTUATION_REGEX,
    WHITESPACE_AND_PUNCTUATION_REGEX,
    WHITESPACE_PUNCTUATION_AND_CJK_REGEX,
)


# Characters that BERT drops, but for those that are spaces.
_DROPPED = r"[\p{C}\x{FFFD}]"
_PRIVATE = r"\p{Co}"
_CJK = f"({CJK_REGEX})"
_MOST_CHARACTERS_OF_A_WORD = 100
_MOST_BYTES_OF_A_CHARACTER = 4
# Characters by the bytes that they have, and one that no word has.
_CHARACTERS_BY_BYTES = (
    r"[\x{0}-\x{7F}]",
    r"[\x{80}-\x{7FF}]",
    r"[\x{800}-\x{FFFF}]",
    r"[\x{10000}-\x{10FFFF}]",
)
_DROPPED_CONTROL = "\x01"
# More would need more private characters.
_MOST_ADDED = 6400


def why_not_in_graphs(
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> str | None:
    """Returns what a tokenizer would have to be for these functions, or `None`.

    Args:
        tokenizer: Any tokenizer of keras-hub.

    Returns:
        A part of a sentence that follows "must have"; `None` if the tokenizer
        can be part of a graph.
    """
    purpose = "for its text to be tokenized in the graph"
    if not isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        return (
            f"a WordPiece tokenizer {purpose}, received a "
            f"{type(tokenizer).__name__}"
        )
    added = getattr(tokenizer, "added_tokens", [])
    unusual = [
        token["content"]
        for token in added
        if any(token.get(k) for k in ("single_word", "lstrip", "rstrip"))
        or token.get("normalized", not token.get("special"))
    ]
    if unusual or len(added) > _MOST_ADDED:
        return (
            f"no more added tokens than the special ones {purpose}, received "
            f"{', '.join(unusual) or len(added)}"
        )
    if getattr(tokenizer, "special_tokens_in_strings", False):
        return (
            "a tokenizer with special_tokens_in_strings=False "
            f"{purpose}, received one with True"
        )
    return None


def clean(text: tf.Tensor) -> tf.Tensor:
    """Replaces invalid UTF-8 by U+FFFD, and all kinds of spaces by one kind.

    keras-hub treats spaces beyond ASCII as parts of words, unlike BERT. The
    number of characters does not change.
    """
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
    return tf.strings.regex_replace(text, r"\p{Z}", " ")


def readable(
    tokenizer: keras_hub.tokenizers.Tokenizer, text: tf.Tensor
) -> tf.Tensor:
    """Cleans text for a tokenizer that is called by itself.

    Its ids are those of `tokenize` then. By itself, keras-hub's WordPiece takes
    words with another space between them for one, and ends at NUL.
    """
    if why_not_in_graphs(tokenizer) is not None:
        return text
    text = clean(text)
    if isinstance(tokenizer, TransformersTokenizer):
        return text
    return _without_nul(text)


def tokenize(
    tokenizer: keras_hub.tokenizers.Tokenizer, text: tf.Tensor
) -> tf.RaggedTensor:
    """Returns the int32 ids of each text's tokens."""
    if isinstance(tokenizer, TransformersTokenizer):
        return tokenize_with_offsets(tokenizer, text)[0]
    return tf.cast(tokenizer(_without_nul(text)), "int32")


def tokenize_with_offsets(
    tokenizer: keras_hub.tokenizers.Tokenizer, text: tf.Tensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Like `tokenize`, with the position of each token in the text.

    keras-hub's tokenizers do not return positions. Here text is normalized
    character by character, so that each byte of the normalized text comes from
    a known character. The result is the same, except that accents are not
    reordered.
    """
    if isinstance(tokenizer, TransformersTokenizer):
        plain, words, word_bytes = _words_of_bert(tokenizer, text)
        folded, pieces = plain, _pieces_of_bert(tokenizer)
    else:
        plain, words, word_bytes = _words_of_keras_hub(tokenizer, text)
        folded = plain
        if tokenizer.lowercase:
            words = tf_text.case_fold_utf8(words)
            folded = tf.ragged.map_flat_values(tf_text.case_fold_utf8, plain)
        # Private to keras-hub, but nothing else has the offsets.
        pieces = tokenizer._fast_word_piece
    # Words start at bytes of the plain text, tokens at bytes of folded words.
    places = _Places(folded)
    word_bytes = places.first_bytes(_Places(plain).characters_at(word_bytes))
    ids, begins, ends = pieces.tokenize_with_offsets(words)
    begins, ends = (
        (tf.cast(offsets, "int64") + word_bytes[..., None]).merge_dims(-2, -1)
        for offsets in (begins, ends)
    )
    ids = tf.cast(ids.merge_dims(-2, -1), "int32")
    begins = places.characters_at(begins)
    ends = places.characters_at(ends - 1) + 1
    if isinstance(tokenizer, TransformersTokenizer):
        ends = _ends_of_added(tokenizer, plain, begins, ends)
    return ids, begins, ends


def _without_nul(text: tf.Tensor) -> tf.Tensor:
    """keras-hub stops at this character."""
    return tf.strings.regex_replace(text, r"\x00", " ")


def _words_of_keras_hub(
    tokenizer: keras_hub.tokenizers.WordPieceTokenizer, text: tf.Tensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Plain characters of texts, their words, and the first bytes of words."""
    plain = tf.strings.unicode_split(_without_nul(text), "UTF-8")
    if tokenizer.strip_accents:
        plain = tf.ragged.map_flat_values(_without_accents, plain)
    split, keep = (
        (WHITESPACE_PUNCTUATION_AND_CJK_REGEX, PUNCTUATION_AND_CJK_REGEX)
        if tokenizer.split_on_cjk
        else (WHITESPACE_AND_PUNCTUATION_REGEX, PUNCTUATION_REGEX)
    )
    return plain, *_split(plain, split, keep)


def _split(
    plain: tf.RaggedTensor, split: str, keep: str
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    words, first_bytes, _ = tf_text.regex_split_with_offsets(
        tf.strings.reduce_join(plain, axis=-1), split, keep
    )
    return words, first_bytes


def _words_of_bert(
    tokenizer: keras_hub.tokenizers.WordPieceTokenizer, text: tf.Tensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """As `_words_of_keras_hub`, by the rules of BERT.

    Special tokens in texts become private characters, which no text has then.
    """
    text = tf.strings.regex_replace(text, _PRIVATE, "\ufffd")
    for number, token in enumerate(tokenizer.added_tokens):
        name = token["content"]
        # The number of characters stays.
        stand_in = _stand_in(number) + (len(name) - 1) * "\ufffd"
        text = tf.strings.regex_replace(text, re.escape(name), stand_in)

    def normalize(flat: tf.Tensor) -> tf.Tensor:
        flat = tf.strings.regex_replace(flat, r"[\t\n\r]", " ")
        private = tf.strings.regex_full_match(flat, _PRIVATE)
        dropped = tf.strings.regex_replace(flat, _DROPPED, "")
        flat = tf.where(private, tf.strings.join([" ", flat, " "]), dropped)
        if tokenizer.split_on_cjk:
            flat = tf.strings.regex_replace(flat, _CJK, r" \1 ")
        if tokenizer.strip_accents:
            flat = _without_accents(flat)
        if tokenizer.lowercase:
            flat = tf.strings.lower(flat, encoding="utf-8")
        return flat

    plain = tf.strings.unicode_split(text, "UTF-8")
    plain = tf.ragged.map_flat_values(normalize, plain)
    words, first_bytes = _split(
        plain, WHITESPACE_AND_PUNCTUATION_REGEX, PUNCTUATION_REGEX
    )
    return plain, tf.ragged.map_flat_values(_without_long, words), first_bytes


def _without_long(words: tf.Tensor) -> tf.Tensor:
    """Makes words of too many characters unknown, and keeps their bytes."""
    unknown = words
    for size, characters in enumerate(_CHARACTERS_BY_BYTES, start=1):
        unknown = tf.strings.regex_replace(
            unknown, f"^{characters}", size * _DROPPED_CONTROL
        )
    length = tf.strings.length(words, unit="UTF8_CHAR")
    return tf.where(length > _MOST_CHARACTERS_OF_A_WORD, unknown, words)


def _ends_of_added(
    tokenizer: keras_hub.tokenizers.WordPieceTokenizer,
    plain: tf.RaggedTensor,
    begins: tf.RaggedTensor,
    ends: tf.RaggedTensor,
) -> tf.RaggedTensor:
    """The ends of tokens, where one character stands for some."""
    rows = begins.value_rowids()
    places = tf.cast(begins.flat_values, "int64")
    places += tf.gather(plain.row_splits, rows)
    first = tf.strings.strip(tf.gather(plain.flat_values, places))
    flat = ends.flat_values
    for number, token in enumerate(tokenizer.added_tokens):
        whole = begins.flat_values + len(token["content"])
        flat = tf.where(first == _stand_in(number), whole, flat)
    return ends.with_flat_values(flat)


def _stand_in(number: int) -> str:
    """The private character for an added token."""
    return chr(0xE000 + number)


def _pieces_of_bert(
    tokenizer: keras_hub.tokenizers.WordPieceTokenizer,
) -> tf_text.FastWordpieceTokenizer:
    vocabulary = list(tokenizer.get_vocabulary())
    for number, token in enumerate(tokenizer.added_tokens):
        vocabulary[tokenizer.token_to_id(token["content"])] = _stand_in(number)
    return tf_text.FastWordpieceTokenizer(
        vocab=vocabulary,
        suffix_indicator=tokenizer.suffix_indicator,
        unknown_token=vocabulary[tokenizer.token_to_id(tokenizer.oov_token)],
        no_pretokenization=True,
        max_bytes_per_word=(
            _MOST_BYTES_OF_A_CHARACTER * _MOST_CHARACTERS_OF_A_WORD
        ),
    )


def _without_accents(characters: tf.Tensor) -> tf.Tensor:
    return tf.strings.regex_replace(
        tf_text.normalize_utf8(characters, "NFD"), r"\p{Mn}", ""
    )


class _Places:
    """Maps bytes of texts to their characters."""

    def __init__(self, characters: tf.RaggedTensor):
        lengths = tf.strings.length(characters.flat_values)
        count = tf.size(lengths, "int64")
        self._splits = characters.row_splits
        # For all texts, concatenated, and the end.
        self._first_bytes = tf.cast(
            tf.concat([[0], tf.cumsum(lengths)], 0), "int64"
        )
        self._owners = tf.repeat(tf.range(count), lengths)

    def first_bytes(self, characters: tf.RaggedTensor) -> tf.RaggedTensor:
        """The first bytes of characters, counted within their texts."""
        rows = characters.value_rowids()
        found = tf.gather(
            self._first_bytes,
            tf.cast(characters.flat_values, "int64")
            + tf.gather(self._splits, rows),
        )
        return characters.with_flat_values(
            found - tf.gather(self._text_bytes(), rows)
        )

    def characters_at(self, offsets: tf.RaggedTensor) -> tf.RaggedTensor:
        """The characters at bytes of their texts, as int32."""
        rows = offsets.value_rowids()
        offsets_in_all = offsets.flat_values + tf.gather(
            self._text_bytes(), rows
        )
        # Folding a word can, rarely, give more bytes than its characters do.
        found = tf.gather(
            self._owners,
            tf.minimum(offsets_in_all, tf.size(self._owners, "int64") - 1),
        )
        found = tf.minimum(found, tf.gather(self._splits, rows + 1) - 1)
        return offsets.with_flat_values(
            tf.cast(found - tf.gather(self._splits, rows), "int32")
        )

    def _text_bytes(self) -> tf.Tensor:
        """The positions at which texts begin."""
        return tf.gather(self._first_bytes, self._splits)
