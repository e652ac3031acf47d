"""The encoders that can be trained, and their classes."""

import dataclasses
from typing import Any
from typing import Literal

import keras_hub

from keras_pkm import models
from training.batches.masking import Masking
from training.batches.objectives import MaskedTokens
from training.loading.language_model_family import LanguageModelFamily


@dataclasses.dataclass(frozen=True)
class Family(LanguageModelFamily):
    """The classes of one kind of encoder.

    Attributes:
        backbone: The class of backbones with memory.
        masked_lm: The class of masked language models.
        classifier: The class of text classifiers.
        answerer: The class of question answerers.
        preprocessor: The class that prepares one or two texts.
        masked_lm_preprocessor: The class that prepares and masks a text.
    """

    backbone: type
    masked_lm: type
    classifier: type
    answerer: type
    preprocessor: type
    masked_lm_preprocessor: type

    #: The name of the training objective.
    objective: Literal["masked"] = dataclasses.field(
        default="masked", init=False
    )
    #: Arguments of the backbone that are copied from an initial model.
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
        """Returns the training objective.

        Args:
            tokenizer: The tokenizer of the text.
            sequence_length: Number of tokens of an input.
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
        memory_block: Literal["ffn", "pkm", "resm"],
        memory: dict[str, Any],
    ) -> keras_hub.models.MaskedLM:
        """Builds a language model with initial weights.

        Args:
            sizes: Arguments of the plain backbone.
            memory_layers: The layers with a memory, counted from 1.
            memory_block: The block of these layers.
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
