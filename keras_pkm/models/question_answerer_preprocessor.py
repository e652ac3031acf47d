"""Lays out a question and its paragraph for question answering."""

from typing import Any

import keras
import keras_hub

from keras_pkm.ops.arguments import positive_int


class QuestionAnswererPreprocessor(keras_hub.models.Preprocessor):
    """Base of the preprocessors of `keras_pkm.models.QuestionAnswerer`.

    An input is `[CLS] question [SEP] paragraph [SEP]`, with the special tokens
    of the model. If it is too long, the end of the paragraph is cut off: split
    a long paragraph into parts. The question is only cut if it is too long by
    itself.

    Use a subclass, such as
    `keras_pkm.models.BertQuestionAnswererPreprocessor`. They all work for
    backbones with and without memory.

    Args:
        tokenizer: keras-hub's tokenizer of the model.
        sequence_length: int. Number of tokens of an input. Defaults to `384`.

    Call arguments:
        x: A dict with `"question"` and `"context"`: strings, or batches of
            strings.
        y: Passed through. Defaults to `None`.
        sample_weight: Passed through. Defaults to `None`.

    Returns:
        `x`, or a tuple with `y` and `sample_weight` if they were given. `x`
        is a dict with `"token_ids"`, `"padding_mask"` and, for BERT,
        `"segment_ids"`, of shape `(batch, sequence_length)`, or
        `(sequence_length,)` for single strings.

    Raises:
        ValueError: `x` is something else.
    """

    has_segments = False
    num_separators = 1

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int = 384,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.tokenizer = tokenizer
        # A `MultiSegmentPacker`, once the layer is built.
        self.packer: Any = None
        self.sequence_length = sequence_length

    @property
    def sequence_length(self) -> int:
        """The number of tokens of an input."""
        return self._sequence_length

    @sequence_length.setter
    def sequence_length(self, length: int) -> None:
        self._sequence_length = positive_int("sequence_length", length)
        if self.packer is not None:
            self.packer.sequence_length = self._sequence_length

    def build(self, input_shape: Any) -> None:
        # A preset's tokenizer has no vocabulary before this.
        self.packer = keras_hub.layers.MultiSegmentPacker(
            start_value=self.tokenizer.start_token_id,
            end_value=self.tokenizer.end_token_id,
            sep_value=[self.tokenizer.end_token_id] * self.num_separators,
            pad_value=self.tokenizer.pad_token_id,
            # The question comes first; the paragraph gets the space left.
            truncate="waterfall",
            sequence_length=self.sequence_length,
        )
        self.built = True

    def call(
        self, x: dict[str, Any], y: Any = None, sample_weight: Any = None
    ) -> Any:
        # keras-hub would take a tuple's second entry for labels.
        if not isinstance(x, dict) or not {"question", "context"} <= set(x):
            raise ValueError(
                "`x` must be a dict with 'question' and 'context'. "
                f"Received: {sorted(x) if isinstance(x, dict) else type(x)}."
            )
        token_ids, segment_ids = self.packer(
            (self.tokenizer(x["question"]), self.tokenizer(x["context"]))
        )
        features = {
            "token_ids": token_ids,
            "padding_mask": token_ids != self.tokenizer.pad_token_id,
        }
        if self.has_segments:
            features["segment_ids"] = segment_ids
        return keras.utils.pack_x_y_sample_weight(features, y, sample_weight)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["sequence_length"] = self.sequence_length
        return config


@keras.saving.register_keras_serializable("keras_pkm")
class BertQuestionAnswererPreprocessor(QuestionAnswererPreprocessor):
    """`keras_pkm.models.QuestionAnswererPreprocessor` of BERT.

    Example:

    >>> tokens = "[PAD] [UNK] [CLS] [SEP] [MASK] why the fox jumped".split()
    >>> preprocessor = keras_pkm.models.BertQuestionAnswererPreprocessor(
    ...     keras_hub.models.BertTokenizer(tokens), sequence_length=8
    ... )
    >>> x = {"question": ["why"], "context": ["the fox jumped"]}
    >>> np.asarray(preprocessor(x)["token_ids"])
    array([[2, 5, 3, 6, 7, 8, 3, 0]], dtype=int32)
    """

    backbone_cls = keras_hub.models.BertBackbone
    tokenizer_cls = keras_hub.models.BertTokenizer
    has_segments = True


@keras.saving.register_keras_serializable("keras_pkm")
class DistilBertQuestionAnswererPreprocessor(QuestionAnswererPreprocessor):
    """`keras_pkm.models.QuestionAnswererPreprocessor` of DistilBERT."""

    backbone_cls = keras_hub.models.DistilBertBackbone
    tokenizer_cls = keras_hub.models.DistilBertTokenizer


@keras.saving.register_keras_serializable("keras_pkm")
class RobertaQuestionAnswererPreprocessor(QuestionAnswererPreprocessor):
    """`keras_pkm.models.QuestionAnswererPreprocessor` of RoBERTa."""

    backbone_cls = keras_hub.models.RobertaBackbone
    tokenizer_cls = keras_hub.models.RobertaTokenizer
    num_separators = 2
