"""Teaches a trained model by writing into its memories alone."""

from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

import keras

from keras_pkm.layers.find_memories import find_memories
from keras_pkm.ops.arguments import positive_int_or_none
from keras_pkm.optimizers.pkm_adam import PKMAdam
from keras_pkm.probing.memory_probe import MemoryProbe
from keras_pkm.teaching.memory_patch import MemoryPatch
from keras_pkm.teaching.memory_patch import copy_tables
from keras_pkm.teaching.slot_importance import SlotImportance
from keras_pkm.teaching.teaching_step import make_teaching_step
from keras_pkm.teaching.teaching_step import strategy_of_one_device
from keras_pkm.teaching.teaching_step import take_steps


class MemoryTeacher:
    """Teaches a trained model something new by writing into its memories.

    A step changes the rows of the value tables that its batch reads, or the
    most important of them. Everything else is unchanged, bit for bit. How much
    the model keeps of what it knows depends on how much the new material shares
    with it. The model runs as in inference: without dropout, and with the
    moving statistics of batch norms.

    Args:
        model: any built Keras model with `keras_pkm.layers.ProductKeyMemory`
            layers, such as a task of `keras_pkm.models`.
        learning_rate: float. Learning rate of the values. Defaults to `3e-3`,
            which suits `"adam"`; `"sgd"` needs one thousands of times as high.
        rule: `"adam"` or `"sgd"`, see `keras_pkm.optimizers.PKMAdam`. Defaults
            to `"adam"`.
        slots: int or `None`. The number of slots of each memory that a step
            may change: the most important ones for its batch. Defaults to
            `None`: all that the batch reads.
        importance: `SlotImportance` that chooses the slots. Needed with
            `slots`.
        loss: `keras.losses.Loss` or `None`, for the one that the model is
            compiled with. Defaults to `None`.

    Example:

    >>> model = keras.Sequential(
    ...     [
    ...         keras.Input((16,)),
    ...         keras_pkm.layers.ProductKeyMemory(8, top_k=4, key_dim=8),
    ...     ]
    ... )
    >>> x, y = np.random.normal(size=(2, 5, 16))
    >>> teacher = keras_pkm.teaching.MemoryTeacher(
    ...     model, learning_rate=0.1, loss=keras.losses.MeanSquaredError()
    ... )
    >>> teacher.teach([(x, y)], steps=20)
    20
    >>> patch = teacher.make_patch()
    >>> patch.revert(model)

    References:

    - [Lin et al., 2025](https://arxiv.org/abs/2510.15103)
    """

    def __init__(
        self,
        model: keras.Model,
        learning_rate: float = 3e-3,
        rule: str = "adam",
        slots: int | None = None,
        importance: SlotImportance | None = None,
        loss: keras.losses.Loss | None = None,
    ):
        self.model = model
        self.slots = positive_int_or_none("slots", slots)
        self.importance = importance
        self._memories = find_memories(model)
        self._check()
        self._start = copy_tables(model)
        self._probe = MemoryProbe(model)
        values = [each.memory_values for each in self._memories.values()]
        with strategy_of_one_device(model).scope():
            self._optimizer = PKMAdam(
                memory_learning_rate=float(learning_rate),
                memory_rule=rule,
                only_chosen_slots=slots is not None,
            )
        self._step = make_teaching_step(model, values, self._optimizer, loss)

    def _check(self) -> None:
        if not self._memories:
            raise ValueError(
                "`model` must have a memory to write into. Received: a "
                f"`{type(self.model).__name__}` without one."
            )
        if (self.slots is None) != (self.importance is None):
            raise ValueError(
                "`slots` and `importance` must be given together: the number "
                "of slots that a step may change, and what chooses them. "
                f"Received: slots={self.slots}, importance={self.importance}."
            )
        if self.importance is None:
            return
        expected = {n: (m.num_slots,) for n, m in self._memories.items()}
        frequencies = self.importance.document_frequencies
        received = {n: each.shape for n, each in frequencies.items()}
        if expected != received:
            raise ValueError(
                "`importance` must be made for the model's memories, whose "
                f"numbers and slots are {expected}. Received: {received}."
            )

    def teach(
        self,
        batches: Iterable[Any],
        steps: int,
        until: Callable[[], bool] | None = None,
    ) -> int:
        """Takes a training step on each batch, repeating the batches.

        Args:
            batches: tuples `(x, y)` or `(x, y, sample_weight)`, as for
                `model.train_on_batch`. They are iterated over repeatedly.
            steps: int. The maximum number of steps.
            until: optional function, called before each step. Teaching ends
                when it returns true, for instance because the model knows
                everything by now.

        Returns:
            The number of steps that were taken.

        Raises:
            ValueError: a batch is no such tuple.
        """
        return take_steps(self._take_step, batches, steps, until)

    def _take_step(self, x: Any, y: Any, sample_weight: Any) -> None:
        self._choose_slots(x)
        self._step(x, y, sample_weight)

    def _choose_slots(self, x: Any) -> None:
        if self.importance is None or self.slots is None:
            return
        (counts,) = self._probe.count_each([(x,)])
        reads = {number: each["reads"] for number, each in counts.items()}
        best = self.importance.best(reads, self.slots)
        for number, memory in self._memories.items():
            self._optimizer.choose_slots(memory.memory_values, best[number])

    def make_patch(self) -> MemoryPatch:
        """Returns all changes since this teacher was created."""
        return MemoryPatch.since(self._start, self.model)
