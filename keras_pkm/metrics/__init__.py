"""Metrics that Keras lacks, and how a memory is used."""

from keras_pkm.metrics.matthews_correlation import MatthewsCorrelation
from keras_pkm.metrics.memory_usage import MemoryUsage
from keras_pkm.metrics.usage_table import format_memory_usage

__all__ = ["MatthewsCorrelation", "MemoryUsage", "format_memory_usage"]
