"""Metrics: how a memory is used, and what Keras lacks for GLUE."""

from keras_pkm.metrics.matthews_correlation import MatthewsCorrelation
from keras_pkm.metrics.memory_usage import MemoryUsage

__all__ = ["MatthewsCorrelation", "MemoryUsage"]
