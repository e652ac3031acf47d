"""The steps of a task on TensorFlow, under `tf.distribute`, too."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_pkm.ops.implementation import fastest_by_default
from keras_pkm.trainers.default_optimizer import count_applied
from keras_pkm.trainers.gradient_accumulation import accumulated_train_step
from keras_pkm.trainers.task import Task
from keras_pkm.trainers.task import moving_statistics


class Steps(Task):
    """Mixin for KerasHub's tasks: their steps on TensorFlow.

    Under a strategy, Keras builds a model from the mean of the replicas'
    batches. This fails for features without a mean, such as bool masks, and for
    batches of different shapes. This mixin builds the model from the first
    replica's batch. `evaluate` and `predict`, whose graphs are never exported,
    use the fastest implementation of memories.
    """

    accumulation_steps: int

    def make_train_function(self, force: bool = False) -> Callable[..., Any]:
        # A step that creates variables would be traced twice.
        if self.optimizer is not None and not self.optimizer.built:
            with self.distribute_strategy.scope():
                self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        statistics = [each.value for each in moving_statistics(self)]
        before = [tf.identity(variable) for variable in statistics]
        step = tf.identity(count_applied(self.optimizer))
        if self.accumulation_steps == 1:
            logs = super().train_step(data)
        else:
            logs = accumulated_train_step(self, data, self.accumulation_steps)
        skipped = tf.equal(count_applied(self.optimizer), step)
        for variable, old in zip(statistics, before):
            variable.assign(tf.where(skipped, old, variable))
        return logs

    def test_step(self, data: Any) -> dict[str, tf.Tensor]:
        with fastest_by_default():
            return super().test_step(data)

    def predict_step(self, data: Any) -> Any:
        with fastest_by_default():
            return super().predict_step(data)

    def _maybe_symbolic_build(
        self, iterator: Any = None, data_batch: Any = None
    ) -> None:
        strategy = self._distribute_strategy
        if strategy is None:
            return
        if iterator is not None:
            for _, _, batches in iterator:
                data_batch = keras.tree.map_structure(
                    lambda x: strategy.experimental_local_results(x)[0],
                    next(batches),
                )
                break
        with strategy.scope():
            self._symbolic_build(data_batch=data_batch)

    def compute_metrics(
        self, *args: Any, **kwargs: Any
    ) -> dict[str, tf.Tensor]:
        logs = super().compute_metrics(*args, **kwargs)
        if isinstance(
            self.distribute_strategy, tf.distribute.MultiWorkerMirroredStrategy
        ):
            # Keras averages logs over workers along an axis that they lack.
            logs = {
                name: tf.reshape(value, [1]) for name, value in logs.items()
            }
        return logs
