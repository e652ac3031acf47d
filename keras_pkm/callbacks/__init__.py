"""Callbacks for training models with memory."""

from typing import TYPE_CHECKING

import keras

from keras_pkm.callbacks.memory_usage_monitor import MemoryUsageMonitor
from keras_pkm.callbacks.skipped_steps import SkippedSteps
from keras_pkm.ops.tensorflow_only import stand_in

if TYPE_CHECKING or keras.backend.backend() == "tensorflow":
    from keras_pkm.callbacks.training_checkpoint import TrainingCheckpoint
else:
    TrainingCheckpoint = stand_in("keras_pkm.callbacks.TrainingCheckpoint")

__all__ = ["MemoryUsageMonitor", "SkippedSteps", "TrainingCheckpoint"]
