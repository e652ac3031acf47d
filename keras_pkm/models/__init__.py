"""Memories in the models of KerasHub, their tasks, and the warm start.

Of each family of `keras_pkm.models.families`, such as BERT, the classes with
memories are attributes of this package, too: `MemoryBertBackbone`,
`MemoryBertMaskedLM` and so on.
"""

from typing import Any

import keras_pkm.models.llama3_tokenizer  # registers it  # noqa: F401
from keras_pkm.converters.memory_state_dicts import memories_from_state_dict
from keras_pkm.layers.memories import memories
from keras_pkm.layers.memories import tables
from keras_pkm.models import families
from keras_pkm.models.adding import add_memory
from keras_pkm.models.from_transformers import from_transformers
from keras_pkm.models.memory_backbone import MemoryBackbone
from keras_pkm.models.question_answerer import BertQuestionAnswerer
from keras_pkm.models.question_answerer import DistilBertQuestionAnswerer
from keras_pkm.models.question_answerer import QuestionAnswerer
from keras_pkm.models.question_answerer import RobertaQuestionAnswerer
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
from keras_pkm.models.warm_start import WarmStartReport
from keras_pkm.models.warm_start import copy_matching_weights
from keras_pkm.probing.adapt_memories import adapt_memories
from keras_pkm.probing.memory_probe import MemoryProbe
from keras_pkm.trainers.freezing import freeze_except_memory
from keras_pkm.trainers.freezing import freeze_memory

__all__ = [
    "BertQuestionAnswerer",
    "BertQuestionAnswererPreprocessor",
    "DistilBertQuestionAnswerer",
    "DistilBertQuestionAnswererPreprocessor",
    "MemoryBackbone",
    "MemoryProbe",
    "QuestionAnswerer",
    "QuestionAnswererPreprocessor",
    "RobertaQuestionAnswerer",
    "RobertaQuestionAnswererPreprocessor",
    "WarmStartReport",
    "adapt_memories",
    "add_memory",
    "copy_matching_weights",
    "freeze_except_memory",
    "freeze_memory",
    "from_transformers",
    "memories",
    "memories_from_state_dict",
    "tables",
]


def __getattr__(name: str) -> Any:
    if name.startswith("Memory") and hasattr(families, name):
        return getattr(families, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'.")
