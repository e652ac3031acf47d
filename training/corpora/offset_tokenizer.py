"""Tokens of many texts at a time, with the characters of each.

Text is tokenized as exported models tokenize it. What their graphs cannot do,
such as byte pairs, the package `tokenizers` does.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import keras_hub
import numpy as np
import tensorflow as tf
from tokenizers import Encoding
from tokenizers import Tokenizer
from tokenizers import models
from tokenizers import pre_tokenizers
from tokenizers import processors

from keras_pkm.text.tokenize import clean
from keras_pkm.text.tokenize import tokenize
from keras_pkm.text.tokenize import tokenize_with_offsets
from keras_pkm.text.tokenize import why_not_in_graphs
from keras_pkm.text.transformers_tokenizers import TransformersTokenizer
from training.runs.user_error import UserError

# Offsets exclude the space that a token begins with.
_TRIM_OFFSETS = processors.ByteLevel(trim_offsets=True)
_TEXTS = [tf.TensorSpec((None,), "string")]


class OffsetTokenizer:
    """A tokenizer of keras-hub that also returns positions in the text."""

    def __init__(self, tokenizer: keras_hub.tokenizers.Tokenizer):
        missing = why_not_in_graphs(tokenizer)
        self._library: Tokenizer | None = None
        if isinstance(tokenizer, TransformersTokenizer):
            self._library = _of_transformers(tokenizer)
        elif isinstance(tokenizer, keras_hub.tokenizers.BytePairTokenizer):
            self._library = _byte_pair(tokenizer)
        elif missing:
            raise UserError(
                f"the model must have a byte-pair tokenizer, or {missing}: use "
                "a BERT, DistilBERT or RoBERTa"
            )
        self._has_graph = not missing
        self._tokenize, self._locate = (
            tf.function(function, input_signature=_TEXTS, autograph=False)
            for function in (
                lambda texts: tokenize(tokenizer, clean(texts)),
                lambda texts: tokenize_with_offsets(tokenizer, clean(texts)),
            )
        )

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the ids of each text."""
        if self._library is None:
            return self._tokenize(tf.constant(texts, tf.string)).to_list()
        return [encoding.ids for encoding in self._encode(texts)]

    def with_offsets(
        self, texts: Sequence[str]
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns ids, first characters, and characters after the last."""
        if self._has_graph:
            return self._locate(tf.constant(texts, tf.string))
        encodings = self._encode(texts)
        ids = ragged_rows([each.ids for each in encodings])
        starts, ends = (
            ragged_rows([[both[side] for both in e.offsets] for e in encodings])
            for side in (0, 1)
        )
        return ids, starts, ends

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        library: Any = self._library
        return library.encode_batch(list(texts), add_special_tokens=False)


def ragged_rows(rows: Sequence[Sequence[int]]) -> tf.RaggedTensor:
    """Returns lists of numbers as a ragged tensor."""
    flat = np.array(list(itertools.chain.from_iterable(rows)), "int32")
    lengths = np.array([len(row) for row in rows], "int64")
    return tf.RaggedTensor.from_row_lengths(flat, lengths)


def _of_transformers(tokenizer: TransformersTokenizer) -> Tokenizer:
    result = Tokenizer.from_str(tokenizer.library_tokenizer.to_str())
    if isinstance(tokenizer, keras_hub.tokenizers.BytePairTokenizer):
        result.post_processor = _TRIM_OFFSETS
    return result


def _byte_pair(tokenizer: keras_hub.tokenizers.BytePairTokenizer) -> Tokenizer:
    merges = [tuple(merge.split(" ")) for merge in tokenizer.merges]
    result = Tokenizer(models.BPE(dict(tokenizer.vocabulary), merges))
    result.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    result.post_processor = _TRIM_OFFSETS
    return result
