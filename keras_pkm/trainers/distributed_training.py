"""Lets keras-hub's tasks train under `tf.distribute`."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeAlias

import keras
import tensorflow as tf

from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.implementation import fastest_by_default
from keras_pkm.trainers.default_optimizer import count_applied
from keras_pkm.trainers.default_optimizer import make_default_optimizer
from keras_pkm.trainers.default_optimizer import warn_of_dense_steps
from keras_pkm.trainers.gradient_accumulation import accumulated_train_step

# For type checkers the mixin is a model: it calls methods of the task that
# follows it in the list of bases.
if TYPE_CHECKING:
    _Task: TypeAlias = keras.Model
else:
    _Task = object


class DistributedTraining(_Task):
    """Mixin for keras-hub tasks: `fit` and `evaluate` under `tf.distribute`.

    Under a strategy, Keras builds a model from the mean of the replicas'
    batches. This fails for features without a mean, such as bool masks, and for
    batches of different shapes. This mixin builds the model from the first
    replica's batch. It also saves presets without the optimizer's state, and
    leaves the moving statistics of batch norms unchanged at steps that the
    optimizer skips. `evaluate` and `predict`, whose graphs are never exported,
    use the fastest implementation of memories.

    `compile(optimizer="auto")`, which keras-hub's tasks call when they are
    created, uses `keras_pkm.optimizers.PKMAdam`.

    Attributes:
        accumulation_steps: int. Each train step splits its batch into this
            number of parts and adds up their gradients, which needs less
            memory. The step is that of the whole batch, of any size; the loss
            must be a mean over examples. Defaults to `1`.
    """

    _accumulation_steps = 1
    _was_warned = False

    @property
    def accumulation_steps(self) -> int:
        return self._accumulation_steps

    @accumulation_steps.setter
    def accumulation_steps(self, value: int) -> None:
        self._accumulation_steps = positive_int("accumulation_steps", value)
        # Makes the next `fit` trace its step again.
        self.train_function = None

    def compile(
        self, optimizer: Any = "auto", *args: Any, **kwargs: Any
    ) -> None:
        if isinstance(optimizer, str) and optimizer == "auto":
            optimizer = make_default_optimizer(self)
        elif not self._was_warned:
            self._was_warned = warn_of_dense_steps(optimizer, self)
        super().compile(optimizer, *args, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded task in the same way as the saved one."""
        config = keras.saving.deserialize_keras_object(config)
        self.compile(**config)
        # Keras loads the optimizer's moments next.
        self.optimizer.build(self.trainable_variables)

    def make_train_function(self, force: bool = False) -> Callable[..., Any]:
        # A step that creates variables would be traced twice.
        if self.optimizer is not None and not self.optimizer.built:
            with self.distribute_strategy.scope():
                self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        statistics = [
            variable.value
            for layer in self._flatten_layers()
            if isinstance(layer, keras.layers.BatchNormalization)
            for variable in (layer.moving_mean, layer.moving_variance)
        ]
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

    def save_task_weights(self, filepath: str) -> None:
        """Saves the weights of the task alone: neither backbone nor optimizer.

        Args:
            filepath: str, ending in `.weights.h5`.
        """
        keras.saving.save_weights(
            self, filepath, objects_to_skip=self._all_but_the_head()
        )

    def load_task_weights(self, filepath: str) -> None:
        """Loads the weights of the task alone: neither backbone nor optimizer.

        Args:
            filepath: str, ending in `.weights.h5`.
        """
        keras.saving.load_weights(
            self, filepath, objects_to_skip=self._all_but_the_head()
        )

    def _all_but_the_head(self) -> list[Any]:
        others = list(self.backbone._flatten_layers())
        if self.optimizer is not None:
            others.append(self.optimizer)
        return others
