"""Backbones with memory layers, their tasks, and the warm start."""

from keras_pkm.any_backbone.adding import add_memory
from keras_pkm.any_backbone.memory_backbone import MemoryBackbone
from keras_pkm.models.masked_lm import PKMBertMaskedLM
from keras_pkm.models.masked_lm import PKMDistilBertMaskedLM
from keras_pkm.models.masked_lm import PKMRobertaMaskedLM
from keras_pkm.models.pkm_bert_backbone import PKMBertBackbone
from keras_pkm.models.pkm_distil_bert_backbone import PKMDistilBertBackbone
from keras_pkm.models.pkm_roberta_backbone import PKMRobertaBackbone
from keras_pkm.models.question_answerer import PKMBertQuestionAnswerer
from keras_pkm.models.question_answerer import PKMDistilBertQuestionAnswerer
from keras_pkm.models.question_answerer import PKMRobertaQuestionAnswerer
from keras_pkm.models.question_answerer import QuestionAnswerer
from keras_pkm.models.question_answerer_preprocessor import (
    BertQuestionAnswererPreprocessor,
)
from keras_pkm.models.question_answerer_preprocessor import (
    DistilBertQuestionAnswererPreprocessor,
)
from keras_pkm.models.question_answerer_preprocessor import (
    QuestionAnswererPreprocessor,
)
from keras_pkm.models.question_answerer_preprocessor import (
    RobertaQuestionAnswererPreprocessor,
)
from keras_pkm.models.text_classifier import PKMBertTextClassifier
from keras_pkm.models.text_classifier import PKMDistilBertTextClassifier
from keras_pkm.models.text_classifier import PKMRobertaTextClassifier
from keras_pkm.models.warm_start import WarmStartReport
from keras_pkm.models.warm_start import copy_matching_weights
from keras_pkm.probing.adapt_memories import adapt_memories
from keras_pkm.probing.memory_probe import MemoryProbe
from keras_pkm.trainers.freezing import freeze_except_memory
from keras_pkm.trainers.freezing import freeze_memory

__all__ = [
    "BertQuestionAnswererPreprocessor",
    "DistilBertQuestionAnswererPreprocessor",
    "MemoryBackbone",
    "MemoryProbe",
    "PKMBertBackbone",
    "PKMBertMaskedLM",
    "PKMBertQuestionAnswerer",
    "PKMBertTextClassifier",
    "PKMDistilBertBackbone",
    "PKMDistilBertMaskedLM",
    "PKMDistilBertQuestionAnswerer",
    "PKMDistilBertTextClassifier",
    "PKMRobertaBackbone",
    "PKMRobertaMaskedLM",
    "PKMRobertaQuestionAnswerer",
    "PKMRobertaTextClassifier",
    "QuestionAnswerer",
    "QuestionAnswererPreprocessor",
    "RobertaQuestionAnswererPreprocessor",
    "WarmStartReport",
    "adapt_memories",
    "add_memory",
    "copy_matching_weights",
    "freeze_except_memory",
    "freeze_memory",
]
