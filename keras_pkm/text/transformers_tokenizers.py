"""Tokenizers that give the ids of transformers' own, from text.

KerasHub's tokenizers of the same vocabulary differ from them on some text.
WordPiece folds case instead of lowercasing (`…` becomes three points, `ß`
becomes `ss`), joins words at spaces beyond ASCII, and splits them at characters
that BERT drops, such as soft hyphens. Byte pairs differ at runs of spaces.
"""

import sys
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
from tokenizers import AddedToken
from tokenizers import Tokenizer
from tokenizers import decoders
from tokenizers import models
from tokenizers import normalizers
from tokenizers import pre_tokenizers


class TransformersTokenizer(keras_hub.tokenizers.Tokenizer):
    """Base of tokenizers that run transformers' library, `tokenizers`.

    A subclass lists it before the tokenizer of keras-hub among its bases, and
    makes the `tokenizers.Tokenizer` of its vocabulary. In graphs, as those of
    `tf.data`, the library runs as a Python function, so that these graphs
    cannot be saved.
    """

    added_tokens: list[dict[str, Any]]

    @property
    def library_tokenizer(self) -> Tokenizer:
        """A `tokenizers.Tokenizer` of the same vocabulary, without padding."""
        if self.__dict__.get("_library_tokenizer") is None:
            made = self._make_library_tokenizer()
            for token in self.added_tokens:
                add = (
                    made.add_special_tokens
                    if token.get("special")
                    else made.add_tokens
                )
                add([AddedToken(**token)])
            self.__dict__["_library_tokenizer"] = made
        return self.__dict__["_library_tokenizer"]

    def _make_library_tokenizer(self) -> Tokenizer:
        raise NotImplementedError

    def _forget_library_tokenizer(self) -> None:
        """Called when there is a new vocabulary."""
        self.__dict__["_library_tokenizer"] = None

    def tokenize(self, inputs: Any) -> Any:
        """Returns the ids of texts, without special tokens around them.

        Args:
            inputs: A string, or a list, array or tensor of strings.

        Returns:
            An array of ids for a string, and a list of lists for several; an
            array if `sequence_length` is set. In graphs: a tensor for a
            string, and a ragged tensor for several.
        """
        # KerasHub uses tensors of TensorFlow, if it is there, on any backend.
        tf = sys.modules.get("tensorflow")
        if tf and isinstance(inputs, tf.Tensor | tf.RaggedTensor):
            if not tf.executing_eagerly():
                return self._tokenize_in_graph(inputs)
            is_ragged = isinstance(inputs, tf.RaggedTensor)
            inputs = inputs.to_list() if is_ragged else inputs.numpy()
        if isinstance(inputs, list | tuple) and any(
            isinstance(each, list | tuple | np.ndarray) for each in inputs
        ):
            return [self.tokenize(row) for row in inputs]
        texts = np.asarray(inputs, dtype=object)
        if texts.ndim > 1:
            return [self.tokenize(row) for row in texts]
        encoded = self._encode(list(texts.reshape(-1)))
        if texts.ndim == 0:
            return np.array(encoded[0], dtype=self._id_dtype)
        if self.sequence_length:
            return np.array(encoded, dtype=self._id_dtype)
        return encoded

    @property
    def _id_dtype(self) -> Any:
        return object if self.compute_dtype == "string" else self.compute_dtype

    def _encode(self, texts: Sequence[str | bytes]) -> list[list[Any]]:
        wants_text = self.compute_dtype == "string"
        for text in texts:
            if not isinstance(text, str | bytes):
                raise ValueError(
                    "`inputs` must be strings. Received: one of type "
                    f"{type(text).__name__}, {text!r}."
                )
        encodings = self.library_tokenizer.encode_batch(
            [
                text.decode("utf-8", "replace")
                if isinstance(text, bytes)
                else text
                for text in texts
            ],
            add_special_tokens=False,
        )
        found = [each.tokens if wants_text else each.ids for each in encodings]
        length = self.sequence_length
        if not length:
            return found
        padding = self.pad_token if wants_text else self.pad_token_id
        return [
            [*ids[:length], *[padding] * (length - len(ids))] for ids in found
        ]

    def _tokenize_in_graph(self, inputs: Any) -> Any:
        tf = sys.modules["tensorflow"]
        if inputs.shape.rank not in (0, 1):
            raise ValueError(
                "`inputs` must be a string or a batch of strings. Received: "
                f"shape {inputs.shape}."
            )

        def encode(texts: Any) -> tuple[Any, Any]:
            ids = self._encode(list(texts))
            lengths = np.array([len(each) for each in ids], "int64")
            flat = [each for row in ids for each in row]
            return np.array(flat, self._id_dtype), lengths

        flat, lengths = tf.numpy_function(
            encode,
            [tf.reshape(inputs, [-1])],
            [tf.as_dtype(self.compute_dtype), tf.int64],
        )
        flat.set_shape([None])
        lengths.set_shape([inputs.shape[0] if inputs.shape.rank else 1])
        if inputs.shape.rank == 0:
            flat.set_shape([self.sequence_length])
            return flat
        ragged = tf.RaggedTensor.from_row_lengths(flat, lengths)
        if not self.sequence_length:
            return ragged
        return ragged.to_tensor(shape=[None, self.sequence_length])


class _WordPiece(TransformersTokenizer):
    """Base of WordPiece tokenizers with BERT's own normalization.

    Args:
        vocabulary: A list of tokens, or `None` if assets are loaded later.
        lowercase: bool. Defaults to `True`.
        strip_accents: optional bool. Defaults to `lowercase`.
        split_on_cjk: bool. Whether Chinese characters are words of their own.
            Defaults to `True`.
        added_tokens: list of dicts, arguments of `tokenizers.AddedToken`.
            These are found in texts and never split. Defaults to none.
        **kwargs: further arguments of the tokenizer of keras-hub.
    """

    def __init__(
        self,
        vocabulary: Sequence[str] | None = None,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_on_cjk: bool = True,
        added_tokens: Sequence[dict[str, Any]] = (),
        **kwargs: Any,
    ):
        self.added_tokens = [dict(token) for token in added_tokens]
        super().__init__(
            vocabulary,
            lowercase=lowercase,
            strip_accents=lowercase if strip_accents is None else strip_accents,
            split_on_cjk=split_on_cjk,
            **kwargs,
        )

    def set_vocabulary(self, vocabulary: Any) -> None:
        super().set_vocabulary(vocabulary)
        self._forget_library_tokenizer()

    def _make_library_tokenizer(self) -> Tokenizer:
        tokens = self.get_vocabulary()
        ids = {token: number for number, token in enumerate(tokens)}
        made = Tokenizer(
            models.WordPiece(
                ids,
                unk_token=self.oov_token,
                continuing_subword_prefix=self.suffix_indicator,
            )
        )
        made.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.split_on_cjk,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return made

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["split_on_cjk"] = self.split_on_cjk
        config["added_tokens"] = [dict(token) for token in self.added_tokens]
        return config


@keras.saving.register_keras_serializable("keras_pkm")
class TransformersBertTokenizer(_WordPiece, keras_hub.models.BertTokenizer):
    """`keras_hub.models.BertTokenizer` that tokenizes as transformers does."""

    # Otherwise keras-hub could choose it for presets of its own.
    backbone_cls = None


@keras.saving.register_keras_serializable("keras_pkm")
class TransformersDistilBertTokenizer(
    _WordPiece, keras_hub.models.DistilBertTokenizer
):
    """As `TransformersBertTokenizer`, for DistilBERT."""

    backbone_cls = None


@keras.saving.register_keras_serializable("keras_pkm")
class TransformersRobertaTokenizer(
    TransformersTokenizer, keras_hub.models.RobertaTokenizer
):
    """`keras_hub.models.RobertaTokenizer` that tokenizes as transformers does.

    Args:
        vocabulary: A dict from tokens to ids, or `None` if assets are loaded
            later.
        merges: A list of merges, or `None`.
        added_tokens: list of dicts, arguments of `tokenizers.AddedToken`.
            These are found in texts and never split. Defaults to none.
        **kwargs: further arguments of the tokenizer of keras-hub.
    """

    backbone_cls = None

    def __init__(
        self,
        vocabulary: dict[str, int] | None = None,
        merges: Sequence[str] | None = None,
        added_tokens: Sequence[dict[str, Any]] = (),
        **kwargs: Any,
    ):
        self.added_tokens = [dict(token) for token in added_tokens]
        super().__init__(vocabulary=vocabulary, merges=merges, **kwargs)

    def set_vocabulary_and_merges(self, vocabulary: Any, merges: Any) -> None:
        super().set_vocabulary_and_merges(vocabulary, merges)
        self._forget_library_tokenizer()

    def _make_library_tokenizer(self) -> Tokenizer:
        ids = {
            token: self.token_to_id(token) for token in self.get_vocabulary()
        }
        merges = [tuple(merge.split(" ")) for merge in self.merges]
        made = Tokenizer(models.BPE(ids, merges))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(
            add_prefix_space=self.add_prefix_space
        )
        made.decoder = decoders.ByteLevel()
        return made

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["added_tokens"] = [dict(token) for token in self.added_tokens]
        return config
