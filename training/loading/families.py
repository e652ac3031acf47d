"""The kinds of language models that can be trained, and their classes."""

import dataclasses
from collections.abc import Iterable
from typing import Any
from typing import ClassVar
from typing import Literal
from typing import TypeVar

import keras_hub

from keras_pkm import models
from keras_pkm.models.families import backbone_class
from keras_pkm.models.families import task_class
from training.batches.masking import Masking
from training.batches.objectives import MaskedTokens
from training.batches.objectives import NextTokens
from training.corpora.byte_pairs import load_byte_pairs
from training.corpora.byte_pairs import train_byte_pairs
from training.corpora.word_pieces import load_vocabulary
from training.corpora.word_pieces import make_tokenizer
from training.corpora.word_pieces import train_vocabulary

#: What a backbone with memories has besides the arguments of the plain one.
ARCHITECTURE = ("feedforward_activation", "normalization_epsilon")


@dataclasses.dataclass(frozen=True)
class LanguageModelFamily:
    """One kind of language model, and how its text is tokenized."""

    # Its name in flags, and in the directories of transformers.
    name: str
    # Its name in text.
    title: str
    # What the names of its classes begin with.
    prefix: str

    def of_keras_hub(self, kind: str) -> type:
        """Returns one of its classes in KerasHub."""
        return getattr(keras_hub.models, f"{self.prefix}{kind}")

    @property
    def plain(self) -> type:
        """Its backbone."""
        return self.of_keras_hub("Backbone")

    @property
    def tokenizer(self) -> type:
        """What turns its text into ids."""
        return self.of_keras_hub("Tokenizer")

    @property
    def has_byte_pairs(self) -> bool:
        """Whether its tokens are byte pairs, not word pieces."""
        return issubclass(
            self.tokenizer, keras_hub.tokenizers.BytePairTokenizer
        )

    def load_tokenizer(self, path: str) -> keras_hub.tokenizers.Tokenizer:
        """Makes a tokenizer of a vocabulary file."""
        if self.has_byte_pairs:
            return load_byte_pairs(path, self.tokenizer)
        return make_tokenizer(load_vocabulary(path), self.tokenizer)

    def train_tokenizer(
        self, documents: Iterable[str], size: int
    ) -> keras_hub.tokenizers.Tokenizer:
        """Makes a tokenizer of `size` tokens for the documents."""
        if self.has_byte_pairs:
            return train_byte_pairs(documents, size, self.tokenizer)
        return make_tokenizer(train_vocabulary(documents, size), self.tokenizer)


@dataclasses.dataclass(frozen=True)
class EncoderFamily(LanguageModelFamily):
    """One kind of encoder."""

    # The names of the inputs of its backbones.
    input_names: tuple[str, ...] = ("token_ids", "padding_mask")

    objective: ClassVar[Literal["masked"]] = "masked"
    # Arguments of the backbone that are copied from an initial model.
    inherited: ClassVar = ("max_sequence_length", *ARCHITECTURE)

    @property
    def answerer(self) -> type[Any]:
        """The class of plain question answerers, which KerasHub lacks."""
        return getattr(models, f"{self.prefix}QuestionAnswerer")

    @property
    def preprocessor(self) -> type:
        """The class that prepares one or two texts."""
        return self.of_keras_hub("TextClassifierPreprocessor")

    def make_objective(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int,
        mask_rate: float,
    ) -> MaskedTokens:
        """Returns the training objective."""
        return MaskedTokens(
            tokenizer,
            sequence_length,
            Masking.from_tokenizer(tokenizer, sequence_length, mask_rate),
            self.input_names,
        )

    def make_preprocessor(
        self, objective: MaskedTokens
    ) -> keras_hub.models.MaskedLMPreprocessor:
        """Returns a preprocessor that prepares text as the objective does."""
        return self.of_keras_hub("MaskedLMPreprocessor")(
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
        memory_block: Literal["ffn", "pkm", "resm", "serial"],
        memory: dict[str, Any],
        share_table: bool = False,
    ) -> keras_hub.models.MaskedLM:
        """Builds a language model with initial weights."""
        sizes = dict(sizes)
        computed = {
            name: sizes.pop(name) for name in ARCHITECTURE if name in sizes
        }
        backbone = backbone_class(self.plain)(
            self.plain(**sizes),
            memory_layers,
            memory,
            memory_block,
            share_table,
            **computed,
        )
        return task_class(self.of_keras_hub("MaskedLM"))(backbone)


@dataclasses.dataclass(frozen=True)
class DecoderFamily(LanguageModelFamily):
    """One kind of causal model."""

    objective: ClassVar[Literal["causal"]] = "causal"
    inherited: ClassVar = (
        *("max_sequence_length", "layer_norm_epsilon"),
        *("rotary_percentage", "rotary_max_wavelength"),
    )

    def make_objective(
        self,
        tokenizer: keras_hub.tokenizers.BytePairTokenizer,
        sequence_length: int,
        mask_rate: float,
    ) -> NextTokens:
        """Returns the training objective."""
        return NextTokens(tokenizer, sequence_length)

    def make_preprocessor(
        self, objective: NextTokens
    ) -> keras_hub.models.CausalLMPreprocessor:
        """Returns a preprocessor that prepares text as the objective does."""
        return self.of_keras_hub("CausalLMPreprocessor")(
            objective.tokenizer, sequence_length=objective.sequence_length
        )

    def make_task(
        self,
        sizes: dict[str, Any],
        *,
        memory_layers: tuple[int, ...],
        memory_block: Literal["ffn", "pkm", "resm", "serial"],
        memory: dict[str, Any],
        share_table: bool = False,
    ) -> keras_hub.models.CausalLM:
        """Builds a language model with initial weights."""
        return models.add_memory(
            self.of_keras_hub("CausalLM")(self.plain(**sizes)),
            memory_layers,
            memory,
            "ffn" if memory_block == "ffn" else "serial",
            share_table,
        )


Family = TypeVar("Family", EncoderFamily, DecoderFamily)

ENCODERS = (
    EncoderFamily(
        "bert", "BERT", "Bert", ("token_ids", "segment_ids", "padding_mask")
    ),
    EncoderFamily("distilbert", "DistilBERT", "DistilBert"),
    EncoderFamily("roberta", "RoBERTa", "Roberta"),
)
DECODERS = (
    DecoderFamily("gpt2", "GPT-2", "GPT2"),
    DecoderFamily("gpt_neox", "GPT-NeoX", "GPTNeoX"),
    DecoderFamily("opt", "OPT", "OPT"),
)


def family_of(
    backbone: keras_hub.models.Backbone, families: Iterable[Family]
) -> Family:
    """Returns the family of a backbone, plain or with memory."""
    # A backbone with memory has its plain one.
    plain = getattr(backbone, "plain_backbone", backbone)
    families = list(families)
    for family in families:
        if isinstance(plain, family.plain):
            return family
    known = ", ".join(family.title for family in families)
    raise ValueError(
        f"it is a {type(backbone).__name__}, but only {known} are known"
    )


def family_named(name: str) -> EncoderFamily | DecoderFamily:
    """Returns the family of that name."""
    return next(
        family for family in (*ENCODERS, *DECODERS) if family.name == name
    )
