"""Backbones with memory layers, their tasks, and the warm start."""

from keras_pkm.models.memory_probe import MemoryProbe
from keras_pkm.models.pkm_bert_backbone import PKMBertBackbone
from keras_pkm.models.pkm_bert_masked_lm import PKMBertMaskedLM
from keras_pkm.models.pkm_bert_text_classifier import PKMBertTextClassifier
from keras_pkm.models.warm_start import WarmStartReport
from keras_pkm.models.warm_start import copy_matching_weights

__all__ = [
    "MemoryProbe",
    "PKMBertBackbone",
    "PKMBertMaskedLM",
    "PKMBertTextClassifier",
    "WarmStartReport",
    "copy_matching_weights",
]
