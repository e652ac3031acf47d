"""Teaches a trained model by writing into its memories alone."""

from keras_pkm.teaching.fact_prompts import Fact
from keras_pkm.teaching.fact_teacher import FactTeacher
from keras_pkm.teaching.fact_teacher import Known
from keras_pkm.teaching.memory_patch import MemoryPatch
from keras_pkm.teaching.memory_teacher import MemoryTeacher
from keras_pkm.teaching.slot_importance import SlotImportance

__all__ = [
    "Fact",
    "FactTeacher",
    "Known",
    "MemoryPatch",
    "MemoryTeacher",
    "SlotImportance",
]
