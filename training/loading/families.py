"""The kinds of models that can be trained, and their classes."""

import dataclasses
from collections.abc import Iterable

import keras_hub

from keras_pkm import models
from training.text.byte_pairs import load_byte_pairs
from training.text.byte_pairs import train_byte_pairs
from training.text.word_pieces import load_vocabulary
from training.text.word_pieces import make_tokenizer
from training.text.word_pieces import train_vocabulary


@dataclasses.dataclass(frozen=True)
class Family:
    """The classes of one kind of model.

    Attributes:
        title: Its name.
        plain: The backbone of keras-hub.
        backbone: The backbone with memory.
        masked_lm: The tasks for it.
        classifier: Likewise.
        answerer: Likewise.
        tokenizer: Turns text into ids.
        preprocessor: Lays out one or two texts.
        masked_lm_preprocessor: Lays out a text, and masks it.
    """

    title: str
    plain: type
    backbone: type
    masked_lm: type
    classifier: type
    answerer: type
    tokenizer: type
    preprocessor: type
    masked_lm_preprocessor: type

    @property
    def name(self) -> str:
        """Its name in flags and in the directories of transformers."""
        return self.backbone.hugging_face_family

    @property
    def has_byte_pairs(self) -> bool:
        """Whether its tokens are byte pairs, not word pieces."""
        return issubclass(
            self.tokenizer, keras_hub.tokenizers.BytePairTokenizer
        )

    def load_tokenizer(self, path: str) -> keras_hub.tokenizers.Tokenizer:
        """Makes a tokenizer of a vocabulary file.

        Raises:
            UserError: the file cannot be used.
        """
        if self.has_byte_pairs:
            return load_byte_pairs(path, self.tokenizer)
        return make_tokenizer(load_vocabulary(path), self.tokenizer)

    def train_tokenizer(
        self, documents: Iterable[str], size: int
    ) -> keras_hub.tokenizers.Tokenizer:
        """Makes a tokenizer of `size` tokens for the documents.

        Raises:
            UserError: the documents, or the size, do not suffice.
        """
        if self.has_byte_pairs:
            return train_byte_pairs(documents, size, self.tokenizer)
        return make_tokenizer(train_vocabulary(documents, size), self.tokenizer)


FAMILIES = (
    Family(
        "BERT",
        keras_hub.models.BertBackbone,
        models.PKMBertBackbone,
        models.PKMBertMaskedLM,
        models.PKMBertTextClassifier,
        models.PKMBertQuestionAnswerer,
        keras_hub.models.BertTokenizer,
        keras_hub.models.BertTextClassifierPreprocessor,
        keras_hub.models.BertMaskedLMPreprocessor,
    ),
    Family(
        "DistilBERT",
        keras_hub.models.DistilBertBackbone,
        models.PKMDistilBertBackbone,
        models.PKMDistilBertMaskedLM,
        models.PKMDistilBertTextClassifier,
        models.PKMDistilBertQuestionAnswerer,
        keras_hub.models.DistilBertTokenizer,
        keras_hub.models.DistilBertTextClassifierPreprocessor,
        keras_hub.models.DistilBertMaskedLMPreprocessor,
    ),
    Family(
        "RoBERTa",
        keras_hub.models.RobertaBackbone,
        models.PKMRobertaBackbone,
        models.PKMRobertaMaskedLM,
        models.PKMRobertaTextClassifier,
        models.PKMRobertaQuestionAnswerer,
        keras_hub.models.RobertaTokenizer,
        keras_hub.models.RobertaTextClassifierPreprocessor,
        keras_hub.models.RobertaMaskedLMPreprocessor,
    ),
)


def family_of(backbone: keras_hub.models.Backbone) -> Family | None:
    """Returns the family of a backbone, plain or with memory."""
    for family in FAMILIES:
        if isinstance(backbone, (family.plain, family.backbone)):
            return family
    return None


def family_named(name: str) -> Family:
    """Returns the family of that name."""
    return next(family for family in FAMILIES if family.name == name)
