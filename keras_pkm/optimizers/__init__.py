"""Optimizers and schedules for models with memory."""

from keras_pkm.optimizers.linear_warmup import LinearWarmup
from keras_pkm.optimizers.loss_scale_optimizer import LossScaleOptimizer
from keras_pkm.optimizers.pkm_adam import PKMAdam

__all__ = ["LinearWarmup", "LossScaleOptimizer", "PKMAdam"]
