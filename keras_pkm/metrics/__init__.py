"""Metrics of memory usage, and others that Keras lacks."""

from keras_pkm.metrics.class_memory_usage import ClassMemoryUsage
from keras_pkm.metrics.matthews_correlation import MatthewsCorrelation
from keras_pkm.metrics.memory_staleness import MemoryStaleness
from keras_pkm.metrics.memory_usage import MemoryUsage
from keras_pkm.metrics.usage_table import format_memory_usage

__all__ = [
    "ClassMemoryUsage",
    "MatthewsCorrelation",
    "MemoryStaleness",
    "MemoryUsage",
    "format_memory_usage",
]
