"""Callbacks for training models with memory."""

from keras_pkm.callbacks.memory_usage_monitor import MemoryUsageMonitor

__all__ = ["MemoryUsageMonitor"]
