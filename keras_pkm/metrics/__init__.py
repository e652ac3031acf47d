"""Metrics of how a memory is used."""

from keras_pkm.metrics.memory_usage import MemoryUsage

__all__ = ["MemoryUsage"]
