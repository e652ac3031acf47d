"""What KerasHub's tasks with memories train with, on each backend."""

import importlib
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeAlias

import keras

from keras_pkm.layers.memories import tables
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.tensorflow_only import require_tensorflow
from keras_pkm.trainers.default_optimizer import make_default_optimizer
from keras_pkm.trainers.default_optimizer import warn_of_dense_steps
from keras_pkm.trainers.default_optimizer import with_loss_scale

# For type checkers the mixin is a model: it calls methods of the task that
# follows it in the list of bases.
if TYPE_CHECKING:
    _Steps: TypeAlias = keras.Model
else:
    _Steps = importlib.import_module(
        f"keras_pkm.trainers.{keras.backend.backend()}_steps"
    ).Steps


class TaskTraining(_Steps):
    """Mixin for KerasHub's tasks: how they are compiled, trained and saved.

    `compile(optimizer="auto")`, which KerasHub's tasks call when they are
    created, uses `keras_pkm.optimizers.PKMAdam`. Steps that the optimizer skips
    leave the moving statistics of batch norms unchanged. Presets are saved
    without the optimizer's state. On TensorFlow, tasks train under
    `tf.distribute`.

    Attributes:
        accumulation_steps: int. Each train step splits its batch into this
            number of parts and adds up their gradients, which needs less
            memory. The step is that of the whole batch, of any size; the loss
            must be a mean over examples. More than 1 needs the TensorFlow
            backend. Defaults to `1`.
    """

    _accumulation_steps = 1
    _was_warned = False
    _trained: tuple[int, ...] | None = None

    @property
    def accumulation_steps(self) -> int:
        return self._accumulation_steps

    @accumulation_steps.setter
    def accumulation_steps(self, value: int) -> None:
        steps = positive_int("accumulation_steps", value)
        if steps > 1:
            require_tensorflow("`accumulation_steps` of more than 1")
        self._accumulation_steps = steps
        # Makes the next `fit` trace its step again.
        self.train_function = None

    def compile(
        self, optimizer: Any = "auto", *args: Any, **kwargs: Any
    ) -> None:
        if isinstance(optimizer, str) and optimizer == "auto":
            optimizer = make_default_optimizer(self)
        elif not self._was_warned:
            self._was_warned = warn_of_dense_steps(optimizer, self)
        if kwargs.get("auto_scale_loss", True):
            optimizer = with_loss_scale(optimizer, self)
        super().compile(optimizer, *args, **kwargs)

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        for table in tables(self).values():
            table.check_claimed()
        # Keras does not see that variables of the backbone have been frozen.
        trainable = tuple(id(each) for each in self.trainable_variables)
        if trainable != self._trained:
            self.train_function = None
            self._trained = trainable
        return super().fit(*args, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded task in the same way as the saved one."""
        config = keras.saving.deserialize_keras_object(config)
        self.compile(**config)
        # Keras loads the optimizer's moments next.
        self.optimizer.build(self.trainable_variables)

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
