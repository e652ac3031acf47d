"""Teaches a trained model by writing into its memories alone."""

from collections.abc import Callable
from typing import Any

import keras

from keras_pkm.layers.memories import memories_for
from keras_pkm.layers.memories import tables
from keras_pkm.ops.arguments import one_of
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.arguments import positive_int_or_none
from keras_pkm.optimizers.memory_rate import Schedule
from keras_pkm.optimizers.memory_rate import check_rate
from keras_pkm.optimizers.pkm_adam import PKMAdam
from keras_pkm.optimizers.row_rules import RULES
from keras_pkm.probing.memory_probe import MemoryProbe
from keras_pkm.probing.model_batches import ModelBatches
from keras_pkm.teaching.memory_patch import MemoryPatch
from keras_pkm.teaching.memory_patch import copy_tables
from keras_pkm.teaching.slot_importance import SlotImportance
from keras_pkm.teaching.teaching_step import make_teaching_step
from keras_pkm.teaching.teaching_step import strategy_of_one_device
from keras_pkm.teaching.teaching_step import take_steps


class MemoryTeacher:
    """Teaches a trained model something new by writing into its memories.

    A step changes the rows of the value tables that its batch reads, or only
    the most important of them. Everything else is unchanged, bit for bit. How
    much the model forgets depends on how much the new material has in common
    with what it knows. The model runs as in inference: without dropout, and
    with the moving statistics of batch norms.

    Args:
        model: any built Keras model with memories, such as a task of
            `keras_pkm.models`.
        learning_rate: float, `LearningRateSchedule`, or function without
            arguments that returns the rate. Learning rate of the values.
            Defaults to `3e-3`, which suits `"adam"`; `"sgd"` needs a rate that
            is thousands of times as high.
        rule: `"adam"` or `"sgd"`, see `keras_pkm.optimizers.PKMAdam`. Defaults
            to `"adam"`.
        slots: int or `None`. The number of slots of each table that a step
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
        learning_rate: float | Schedule | Callable[[], Any] = 3e-3,
        rule: str = "adam",
        slots: int | None = None,
        importance: SlotImportance | None = None,
        loss: keras.losses.Loss | None = None,
    ):
        self.model = model
        self.slots = positive_int_or_none("slots", slots)
        self.importance = importance
        self._memories = memories_for(model, "to write into")
        self._check()
        self._start = copy_tables(model)
        self._probe = MemoryProbe(model)
        values = [table.values for table in tables(model).values()]
        with strategy_of_one_device(model).scope():
            self._optimizer = PKMAdam(
                memory_learning_rate=check_rate("learning_rate", learning_rate),
                memory_rule=one_of("rule", rule, RULES),
                only_chosen_slots=slots is not None,
            )
        self._step = make_teaching_step(model, values, self._optimizer, loss)

    def _check(self) -> None:
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
        batches: Any,
        steps: int,
        until: Callable[[], bool] | None = None,
        batch_size: int | None = None,
    ) -> int:
        """Takes a training step on each batch, repeating the batches.

        The optimizer continues from the last call. After reverting a patch,
        make a new teacher, because the moments still include the patch.

        Args:
            batches: batches as for `fit`: a list of tuples `(x, y)` or
                `(x, y, sample_weight)`, a `tf.data.Dataset`, a
                `keras.utils.PyDataset`, or another iterable; or such a tuple of
                arrays, which is cut into batches. They are iterated over
                repeatedly; a generator must have `steps` batches. If the model
                is a task with a preprocessor, `x` may be texts, and texts alone
                are enough where the preprocessor makes the labels, as for
                causal language models.
            steps: int. The maximum number of steps.
            until: optional function, called before each step. Teaching ends
                when it returns true, for instance because the model knows
                everything by now.
            batch_size: optional int. The number of examples in a batch, if
                `batches` is arrays. Defaults to `None`: 32, as in Keras.

        Returns:
            The number of steps that were taken.

        Raises:
            ValueError: `batches` is none of these, has no batch or no labels,
                or is a generator that ends before `steps`; or the gradient of
                every table is zero at all steps of a pass over the batches.
                One batch without a gradient, such as one of padding, is no
                error. Steps that were taken before an error stay, as in `fit`;
                `make_patch` has them, and can revert them.
        """
        steps = positive_int("steps", steps)
        checked = ModelBatches(batches, self.model, "batches", batch_size)
        return take_steps(self._take_step, checked, steps, until)

    def _take_step(self, x: Any, y: Any, sample_weight: Any) -> Any:
        if not self._choose_slots(x):
            return 0.0
        return self._step(x, y, sample_weight)

    def _choose_slots(self, x: Any) -> bool:
        """Chooses the slots of a step; returns whether there are any."""
        if self.importance is None or self.slots is None:
            return True
        counts = self._probe.count(x)
        chosen = []
        for table in tables(self.model).values():
            # Several memories may read it.
            reads = {
                number: counts[number]["reads"]
                for number, memory in self._memories.items()
                if memory.table is table
            }
            chosen.append(self.importance.best_of_table(reads, self.slots))
            self._optimizer.choose_slots(table.values, chosen[-1])
        return any(map(len, chosen))

    def make_patch(self) -> MemoryPatch:
        """Returns all changes since this teacher was created."""
        return MemoryPatch.since(self._start, self.model)
