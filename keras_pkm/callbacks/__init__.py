"""Callbacks for training models with memory."""

from keras_pkm.callbacks.memory_usage_monitor import MemoryUsageMonitor
from keras_pkm.callbacks.skipped_steps import SkippedSteps
from keras_pkm.callbacks.training_checkpoint import TrainingCheckpoint

__all__ = ["MemoryUsageMonitor", "SkippedSteps", "TrainingCheckpoint"]
