"""The kinds of models that can be trained, and their classes."""

import dataclasses
from collections.abc import Iterable
from typing import Any
from typing import Literal

import keras_hub

from keras_pkm import models
from training.batches.masking import Masking
from training.batches.objectives import MaskedTokens
from training.batches.objectives import NextTokens
from training.text.byte_pairs import load_byte_pairs
from training.text.byte_pairs import train_byte_pairs
from training.text.word_pieces import load_vocabulary
from training.text.word_pieces import make_tokenizer
from training.text.word_pieces import train_vocabulary


@dataclasses.dataclass(frozen=True)
class LanguageModelFamily:
    """The classes of one kind of model, and how its text is tokenized.

    Attributes:
        title: Its name.
        plain: The backbone of keras-hub.
        tokenizer: Turns text into ids.
    """

    title: str
    plain: type
    tokenizer: type

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


@dataclasses.dataclass(frozen=True)
class Family(LanguageModelFamily):
    """The classes of one kind of encoder.

    Attributes:
        backbone: The backbone with memory.
        masked_lm: The tasks for it.
        classifier: Likewise.
        answerer: Likewise.
        preprocessor: Lays out one or two texts.
        masked_lm_preprocessor: Lays out a text, and masks it.
    """

    backbone: type
    masked_lm: type
    classifier: type
    answerer: type
    preprocessor: type
    masked_lm_preprocessor: type

    #: What its models learn from running text.
    objective: Literal["masked"] = dataclasses.field(
        default="masked", init=False
    )
    #: Arguments of its backbones that a model inherits from an initial one.
    inherited = ("max_sequence_length", "activation", "layer_norm_epsilon")

    @property
    def name(self) -> str:
        """Its name in flags and in the directories of transformers."""
        return self.backbone.hugging_face_family

    def make_objective(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int,
        mask_rate: float,
    ) -> MaskedTokens:
        """Returns what its models learn from text.

        Args:
            tokenizer: Of the text.
            sequence_length: Tokens of an input.
            mask_rate: Share of the tokens to predict.
        """
        return MaskedTokens(
            tokenizer,
            sequence_length,
            Masking.from_tokenizer(tokenizer, sequence_length, mask_rate),
            self.backbone.input_names,
        )

    def make_preprocessor(
        self, objective: MaskedTokens
    ) -> keras_hub.models.MaskedLMPreprocessor:
        """Returns what does to text what the objective does."""
        return self.masked_lm_preprocessor(
            objective.tokenizer,
            sequence_length=objective.sequence_length,
            mask_selection_rate=objective.masking.mask_selection_rate,
            mask_selection_length=objective.masking.mask_selection_length,
        )

    def make_task(
        self,
        sizes: dict[str, Any],
        *,
        memory_layers: tuple[int, ...],
        memory_block: Literal["ffn", "pkm", "resm"],
        memory: dict[str, Any],
    ) -> keras_hub.models.MaskedLM:
        """Builds a language model with fresh weights.

        Args:
            sizes: Arguments of the plain backbone.
            memory_layers: The layers with a memory, counted from 1.
            memory_block: What they consist of.
            memory: Arguments of `keras_pkm.layers.ProductKeyMemory`.
        """
        return self.masked_lm(
            self.backbone(
                **sizes,
                memory_layers=memory_layers,
                memory_block=memory_block,
                memory=memory,
            )
        )


@dataclasses.dataclass(frozen=True)
class DecoderFamily(LanguageModelFamily):
    """The classes of one kind of causal model.

    Attributes:
        name: Its name in flags.
        causal_lm: The plain task.
        causal_lm_preprocessor: Lays out a text.
    """

    name: str
    causal_lm: type
    causal_lm_preprocessor: type

    objective: Literal["causal"] = dataclasses.field(
        default="causal", init=False
    )
    inherited = ("max_sequence_length",)

    def make_objective(
        self,
        tokenizer: keras_hub.tokenizers.BytePairTokenizer,
        sequence_length: int,
        mask_rate: float,
    ) -> NextTokens:
        """Returns what its models learn from text.

        Args:
            tokenizer: Of the text.
            sequence_length: Tokens of an input.
            mask_rate: Without effect.
        """
        return NextTokens(tokenizer, sequence_length)

    def make_preprocessor(
        self, objective: NextTokens
    ) -> keras_hub.models.CausalLMPreprocessor:
        """Returns what does to text what the objective does."""
        return self.causal_lm_preprocessor(
            objective.tokenizer, sequence_length=objective.sequence_length
        )

    def make_task(
        self,
        sizes: dict[str, Any],
        *,
        memory_layers: tuple[int, ...],
        memory_block: Literal["ffn", "resm"],
        memory: dict[str, Any],
    ) -> keras_hub.models.CausalLM:
        """Builds a language model with fresh weights.

        Args:
            sizes: Arguments of the plain backbone.
            memory_layers: The layers with a memory, counted from 1.
            memory_block: Memories stand behind blocks; there is no choice.
            memory: Arguments of `keras_pkm.layers.ProductKeyMemory`.
        """
        plain = self.causal_lm(self.plain(**sizes))
        return models.add_memory(plain, memory_layers, memory)


FAMILIES = (
    Family(
        title="BERT",
        plain=keras_hub.models.BertBackbone,
        tokenizer=keras_hub.models.BertTokenizer,
        backbone=models.PKMBertBackbone,
        masked_lm=models.PKMBertMaskedLM,
        classifier=models.PKMBertTextClassifier,
        answerer=models.PKMBertQuestionAnswerer,
        preprocessor=keras_hub.models.BertTextClassifierPreprocessor,
        masked_lm_preprocessor=keras_hub.models.BertMaskedLMPreprocessor,
    ),
    Family(
        title="DistilBERT",
        plain=keras_hub.models.DistilBertBackbone,
        tokenizer=keras_hub.models.DistilBertTokenizer,
        backbone=models.PKMDistilBertBackbone,
        masked_lm=models.PKMDistilBertMaskedLM,
        classifier=models.PKMDistilBertTextClassifier,
        answerer=models.PKMDistilBertQuestionAnswerer,
        preprocessor=keras_hub.models.DistilBertTextClassifierPreprocessor,
        masked_lm_preprocessor=keras_hub.models.DistilBertMaskedLMPreprocessor,
    ),
    Family(
        title="RoBERTa",
        plain=keras_hub.models.RobertaBackbone,
        tokenizer=keras_hub.models.RobertaTokenizer,
        backbone=models.PKMRobertaBackbone,
        masked_lm=models.PKMRobertaMaskedLM,
        classifier=models.PKMRobertaTextClassifier,
        answerer=models.PKMRobertaQuestionAnswerer,
        preprocessor=keras_hub.models.RobertaTextClassifierPreprocessor,
        masked_lm_preprocessor=keras_hub.models.RobertaMaskedLMPreprocessor,
    ),
)
DECODERS = (
    DecoderFamily(
        title="GPT-2",
        plain=keras_hub.models.GPT2Backbone,
        tokenizer=keras_hub.models.GPT2Tokenizer,
        name="gpt2",
        causal_lm=keras_hub.models.GPT2CausalLM,
        causal_lm_preprocessor=keras_hub.models.GPT2CausalLMPreprocessor,
    ),
)


def family_of(backbone: keras_hub.models.Backbone) -> Family | None:
    """Returns the family of an encoder, plain or with memory."""
    for family in FAMILIES:
        if isinstance(backbone, (family.plain, family.backbone)):
            return family
    return None


def decoder_family_of(
    backbone: keras_hub.models.Backbone,
) -> DecoderFamily | None:
    """Returns the family of a decoder, plain or with memory."""
    # A backbone with memory has its plain one.
    plain = getattr(backbone, "plain_backbone", backbone)
    for family in DECODERS:
        if isinstance(plain, family.plain):
            return family
    return None


def family_named(name: str) -> Family | DecoderFamily:
    """Returns the family of that name."""
    return next(
        family for family in (*FAMILIES, *DECODERS) if family.name == name
    )
