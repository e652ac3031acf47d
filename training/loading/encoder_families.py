"""The encoders that can be trained, and their classes."""

import dataclasses
from typing import Any
from typing import Literal

import keras_hub

from keras_pkm import models
from keras_pkm.models.families import backbone_class
from keras_pkm.models.families import task_class
from training.batches.masking import Masking
from training.batches.objectives import MaskedTokens
from training.loading.language_model_family import LanguageModelFamily

#: What a backbone with memories has besides the arguments of the plain one.
ARCHITECTURE = ("feedforward_activation", "normalization_epsilon")


@dataclasses.dataclass(frozen=True)
class Family(LanguageModelFamily):
    """The classes of one kind of encoder."""

    # Its name in flags and in the directories of transformers.
    name: str
    # The class of plain masked language models.
    masked_lm: type
    # The class of plain text classifiers.
    classifier: type
    # The class of plain question answerers.
    answerer: type[Any]
    # The class that prepares one or two texts.
    preprocessor: type
    # The class that prepares and masks a text.
    masked_lm_preprocessor: type
    # The names of the inputs of its backbones.
    input_names: tuple[str, ...] = ("token_ids", "padding_mask")

    #: The name of the training objective.
    objective: Literal["masked"] = dataclasses.field(
        default="masked", init=False
    )
    #: Arguments of the backbone that are copied from an initial model.
    inherited = ("max_sequence_length", *ARCHITECTURE)

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
        return task_class(self.masked_lm)(backbone)


FAMILIES = (
    Family(
        title="BERT",
        plain=keras_hub.models.BertBackbone,
        tokenizer=keras_hub.models.BertTokenizer,
        name="bert",
        masked_lm=keras_hub.models.BertMaskedLM,
        classifier=keras_hub.models.BertTextClassifier,
        answerer=models.BertQuestionAnswerer,
        preprocessor=keras_hub.models.BertTextClassifierPreprocessor,
        masked_lm_preprocessor=keras_hub.models.BertMaskedLMPreprocessor,
        input_names=("token_ids", "segment_ids", "padding_mask"),
    ),
    Family(
        title="DistilBERT",
        plain=keras_hub.models.DistilBertBackbone,
        tokenizer=keras_hub.models.DistilBertTokenizer,
        name="distilbert",
        masked_lm=keras_hub.models.DistilBertMaskedLM,
        classifier=keras_hub.models.DistilBertTextClassifier,
        answerer=models.DistilBertQuestionAnswerer,
        preprocessor=keras_hub.models.DistilBertTextClassifierPreprocessor,
        masked_lm_preprocessor=keras_hub.models.DistilBertMaskedLMPreprocessor,
    ),
    Family(
        title="RoBERTa",
        plain=keras_hub.models.RobertaBackbone,
        tokenizer=keras_hub.models.RobertaTokenizer,
        name="roberta",
        masked_lm=keras_hub.models.RobertaMaskedLM,
        classifier=keras_hub.models.RobertaTextClassifier,
        answerer=models.RobertaQuestionAnswerer,
        preprocessor=keras_hub.models.RobertaTextClassifierPreprocessor,
        masked_lm_preprocessor=keras_hub.models.RobertaMaskedLMPreprocessor,
    ),
)
