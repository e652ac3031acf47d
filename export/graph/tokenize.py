"""Turns text into tokens in portable graphs."""

import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text

from keras_pkm.runs.user_error import UserError

# keras-hub's patterns for the boundaries of words.
from keras_hub.src.tokenizers.word_piece_tokenizer import (  # isort: skip
    PUNCTUATION_AND_CJK_REGEX,
    PUNCTUATION_REGEX,
    WHITESPACE_AND_PUNCTUATION_REGEX,
    WHITESPACE_PUNCTUATION_AND_CJK_REGEX,
)


def check_tokenizer(tokenizer: keras_hub.tokenizers.Tokenizer) -> None:
    """Checks that a tokenizer can be part of an exported graph.

    Raises:
        UserError: it cannot.
    """
    if not isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        raise UserError(
            "--model must have a WordPiece tokenizer for its text to be "
            f"tokenized in the graph, received a {type(tokenizer).__name__}: "
            "pass --what encoder, and tokenize outside"
        )


def clean(text: tf.Tensor) -> tf.Tensor:
    """Replaces invalid UTF-8 by U+FFFD, and all kinds of spaces by one kind.

    keras-hub treats spaces beyond ASCII as parts of words, unlike BERT and
    `training/text/packed_text.py`, and stops at the character NUL. The number
    of characters does not change.
    """
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
    return tf.strings.regex_replace(text, r"[\p{Z}\x00]", " ")


def tokenize(
    tokenizer: keras_hub.tokenizers.Tokenizer, text: tf.Tensor
) -> tf.RaggedTensor:
    """Returns the int32 ids of each text's tokens.

    Args:
        tokenizer: keras-hub's WordPiece tokenizer.
        text: string tensor of shape `(texts,)`, clean.
    """
    return tf.cast(tokenizer(text), "int32")


def tokenize_with_offsets(
    tokenizer: keras_hub.tokenizers.Tokenizer, text: tf.Tensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Like `tokenize`, with the position of each token in the text.

    keras-hub's tokenizers do not return positions. Here text is normalized
    character by character, so that each byte of the normalized text comes from
    a known character. The result is the same, except that accents are not
    reordered.

    Args:
        tokenizer: keras-hub's WordPiece tokenizer.
        text: string tensor of shape `(texts,)`, clean.

    Returns:
        A tuple of ids, first characters, and characters after the last: int32
        ragged tensors of shape `(texts, (tokens))`.
    """
    characters = tf.strings.unicode_split(text, "UTF-8")
    plain = characters
    if tokenizer.strip_accents:
        plain = tf.ragged.map_flat_values(_without_accents, plain)
    split, keep = (
        (WHITESPACE_PUNCTUATION_AND_CJK_REGEX, PUNCTUATION_AND_CJK_REGEX)
        if tokenizer.split_on_cjk
        else (WHITESPACE_AND_PUNCTUATION_REGEX, PUNCTUATION_REGEX)
    )
    words, word_bytes, _ = tf_text.regex_split_with_offsets(
        tf.strings.reduce_join(plain, axis=-1), split, keep
    )
    folded = plain
    if tokenizer.lowercase:
        words = tf_text.case_fold_utf8(words)
        folded = tf.ragged.map_flat_values(tf_text.case_fold_utf8, plain)
    # Words start at bytes of the plain text, tokens at bytes of folded words.
    places = _Places(folded)
    word_bytes = places.first_bytes(_Places(plain).characters_at(word_bytes))
    # Private to keras-hub, but nothing else has the offsets.
    ids, begins, ends = tokenizer._fast_word_piece.tokenize_with_offsets(words)
    begins, ends = (
        (tf.cast(offsets, "int64") + word_bytes[..., None]).merge_dims(-2, -1)
        for offsets in (begins, ends)
    )
    return (
        tf.cast(ids.merge_dims(-2, -1), "int32"),
        places.characters_at(begins),
        places.characters_at(ends - 1) + 1,
    )


def _without_accents(characters):
    return tf.strings.regex_replace(
        tf_text.normalize_utf8(characters, "NFD"), r"\p{Mn}", ""
    )


class _Places:
    """Maps bytes of texts to their characters.

    Args:
        characters: strings of shape `(texts, (characters))`, normalized. An
            empty string has no byte.
    """

    def __init__(self, characters):
        lengths = tf.strings.length(characters.flat_values)
        count = tf.size(lengths, "int64")
        self._splits = characters.row_splits
        # For all texts, concatenated, and the end.
        self._first_bytes = tf.cast(
            tf.concat([[0], tf.cumsum(lengths)], 0), "int64"
        )
        self._owners = tf.repeat(tf.range(count), lengths)

    def first_bytes(self, characters):
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

    def characters_at(self, offsets):
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

    def _text_bytes(self):
        """The positions at which texts begin."""
        return tf.gather(self._first_bytes, self._splits)
