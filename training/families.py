"""The kinds of models that can be fine-tuned, and their classes."""

import dataclasses

import keras_hub

from keras_pkm import models


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
        preprocessor: Lays out one or two texts.
    """

    title: str
    plain: type
    backbone: type
    masked_lm: type
    classifier: type
    answerer: type
    preprocessor: type

    @property
    def model_type(self) -> str:
        """Its name in the directories of transformers."""
        return self.backbone.hugging_face_family


FAMILIES = (
    Family(
        "BERT",
        keras_hub.models.BertBackbone,
        models.PKMBertBackbone,
        models.PKMBertMaskedLM,
        models.PKMBertTextClassifier,
        models.PKMBertQuestionAnswerer,
        keras_hub.models.BertTextClassifierPreprocessor,
    ),
    Family(
        "DistilBERT",
        keras_hub.models.DistilBertBackbone,
        models.PKMDistilBertBackbone,
        models.PKMDistilBertMaskedLM,
        models.PKMDistilBertTextClassifier,
        models.PKMDistilBertQuestionAnswerer,
        keras_hub.models.DistilBertTextClassifierPreprocessor,
    ),
    Family(
        "RoBERTa",
        keras_hub.models.RobertaBackbone,
        models.PKMRobertaBackbone,
        models.PKMRobertaMaskedLM,
        models.PKMRobertaTextClassifier,
        models.PKMRobertaQuestionAnswerer,
        keras_hub.models.RobertaTextClassifierPreprocessor,
    ),
)


def family_of(backbone) -> Family | None:
    """Returns the family of a backbone, plain or with memory."""
    for family in FAMILIES:
        if isinstance(backbone, (family.plain, family.backbone)):
            return family
    return None
