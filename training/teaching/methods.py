"""The teaching methods, which differ in the weights that they train."""

import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any
from typing import Literal
from typing import Protocol

import keras
import tensorflow as tf

from keras_pkm.layers.memories import memories
from keras_pkm.optimizers.pkm_adam import PKMAdam
from keras_pkm.probing.model_batches import ModelBatches
from keras_pkm.teaching.memory_teacher import MemoryTeacher
from keras_pkm.teaching.slot_importance import SlotImportance
from keras_pkm.teaching.teaching_step import make_teaching_step
from keras_pkm.teaching.teaching_step import take_steps
from keras_pkm.trainers.freezing import freeze_pooler
from training.runs.user_error import UserError

Method = Literal["values", "slots", "all", "head", "ffn", "lora", "replay"]
Rule = Literal["adam", "sgd"]
#: The methods that change memory values only.
OF_MEMORIES: tuple[Method, ...] = ("values", "slots")
#: The names of the layers of attention and of feed-forward networks.
ALL_MATRICES = (
    *("query", "key", "value", "attention_output"),
    *("feedforward_intermediate_dense", "feedforward_output_dense"),
)


@dataclasses.dataclass(frozen=True)
class Lora:
    """What LoRA adds."""

    rank: int = 8
    # The names of the layers; `None` for attention's queries and values.
    layers: tuple[str, ...] | None = None


class Teacher(Protocol):
    """Takes steps on batches, as `keras_pkm.teaching.MemoryTeacher` does."""

    def teach(
        self,
        batches: Iterable[Any],
        steps: int,
        until: Callable[[], bool] | None = None,
    ) -> int: ...


def make_teacher(
    task: keras.Model,
    method: Method,
    *,
    learning_rate: float,
    rule: Rule = "adam",
    slots: int | None = None,
    importance: SlotImportance | None = None,
    replayed: tf.data.Dataset | None = None,
    lora: Lora = Lora(),
    of_values: float = 1.0,
    towards_old: float = 0.0,
) -> Teacher:
    """Returns a teacher for a language model.

    Do not call the model before: `"lora"` changes its layers.

    If all weights are trained, `of_values` times `learning_rate` is the rate of
    the values. `towards_old` is a decoupled L2 penalty: in each step, weights
    go `learning_rate * towards_old` of the way back to what they were.
    """
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )
    if method in OF_MEMORIES:
        check_memory(task, method)
        return MemoryTeacher(
            task,
            learning_rate,
            rule,
            slots if method == "slots" else None,
            importance if method == "slots" else None,
            loss,
        )
    variables = _trained(task, method, lora)
    if not variables:
        raise UserError(
            f"--method {method} needs a model with such a part, received a "
            f"{type(task).__name__}: pass another --method"
        )
    optimizer = PKMAdam(learning_rate, of_values * learning_rate)
    step = make_teaching_step(task, variables, optimizer, loss)
    if towards_old:
        share = min(1.0, learning_rate * towards_old)
        step = _towards_old(step, variables, share)
    return _WeightTeacher(task, step, replayed if method == "replay" else None)


def check_memory(task: keras.Model, method: Method) -> None:
    """Checks that a task has memory, if a method needs it."""
    if method in OF_MEMORIES and not memories(task):
        raise UserError(
            f"--method {method} needs a model with a memory, received one "
            "without: pass --method all, or a model with a memory"
        )


class _WeightTeacher:
    """A teacher that trains any variables."""

    def __init__(
        self,
        task: keras.Model,
        step: Callable,
        replayed: tf.data.Dataset | None,
    ):
        self._task = task
        self._step = step
        self._replayed = None if replayed is None else iter(replayed)

    def teach(
        self,
        batches: Iterable[Any],
        steps: int,
        until: Callable[[], bool] | None = None,
    ) -> int:
        checked = ModelBatches(batches, self._task, "batches")
        return take_steps(self._take_step, checked, steps, until)

    def _take_step(self, *batch: Any) -> Any:
        if self._replayed is not None:
            batch = keras.tree.map_structure(
                _join, batch, tuple(next(self._replayed))
            )
        return self._step(*batch)


def _towards_old(
    step: Callable, variables: list[keras.Variable], share: float
) -> Callable:
    """A step, and a share of the way back to what the variables were."""
    old = [tf.identity(each.value) for each in variables]

    @tf.function
    def go_back() -> None:
        for variable, start in zip(variables, old):
            variable.value.assign_sub(share * (variable.value - start))

    def take(*batch: Any) -> Any:
        largest = step(*batch)
        go_back()
        return largest

    return take


def _join(new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
    """Concatenates two arrays; the narrower one is padded with zeros."""
    width = max(new.shape[1], old.shape[1])
    padded = [
        tf.pad(each, [[0, 0], [0, width - each.shape[1]]])
        for each in (new, old)
    ]
    return tf.concat(padded, axis=0)


def _trained(
    task: keras.Model, method: Method, lora: Lora
) -> list[keras.Variable]:
    if method in ("all", "replay"):
        freeze_pooler(task.backbone)
        return task.trainable_variables
    if method == "head":
        # Without the token embeddings, to which the head is tied.
        return _found(task, "mlm_head/")
    if method == "ffn":
        return _found(
            task,
            "/feedforward_intermediate_dense/",
            "/feedforward_output_dense/",
        )
    layers = None if lora.layers is None else list(lora.layers)
    task.backbone.enable_lora(lora.rank, layers)
    return _found(task, "lora_kernel")


def _found(task: keras.Model, *parts: str) -> list[keras.Variable]:
    return [
        each
        for each in task.trainable_variables
        if any(part in each.path for part in parts)
    ]
