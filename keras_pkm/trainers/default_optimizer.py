"""The default optimizer of tasks, and a warning about unsuitable ones."""

import logging
from typing import Any

import keras

from keras_pkm.ops.value_tables import is_table
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam

_log = logging.getLogger(__name__)
# The default of keras-hub's tasks.
_LEARNING_RATE = 5e-5


def make_default_optimizer(model: keras.Model) -> keras.optimizers.Optimizer:
    """Returns the optimizer for `compile(optimizer="auto")`.

    It is `PKMAdam`, with loss scaling in float16 with float32 weights.

    Args:
        model: The task.
    """
    return with_loss_scale(PKMAdam(_LEARNING_RATE), model)


def with_loss_scale(optimizer: Any, model: keras.Model) -> Any:
    """Returns `PKMAdam` with our loss scaling in float16.

    Keras would wrap it in its own class. Anything else is returned as it is.
    """
    # The policies of quantized models have other names.
    policy = model.dtype_policy
    dtypes = policy.compute_dtype, policy.variable_dtype
    is_half = dtypes == ("float16", "float32")
    if is_half and isinstance(optimizer, PKMAdam):
        return LossScaleOptimizer(optimizer)
    return optimizer


def warn_of_dense_steps(
    optimizer: keras.optimizers.Optimizer | str, model: keras.Model
) -> bool:
    """Logs a warning if an optimizer changes rows that no token has read.

    Args:
        optimizer: The optimizer, or its name.
        model: The task that is compiled with it.

    Returns:
        Whether the warning was logged.
    """
    inner = inner_of(optimizer)
    if isinstance(inner, PKMAdam) or not has_trainable_values(model):
        return False
    name = inner if isinstance(inner, str) else type(inner).__name__
    _log.warning(
        "%s is compiled with the optimizer %s, whose steps change all rows of "
        "the memory values, at a cost that grows with the table. "
        "keras_pkm.optimizers.PKMAdam changes only those that the batch reads.",
        type(model).__name__,
        name,
    )
    return True


def has_trainable_values(model: keras.Model) -> bool:
    """Whether a model has a trainable table of memory values."""
    return any(map(is_table, model.trainable_variables))


def inner_of(optimizer: Any) -> Any:
    """Returns the optimizer that a loss-scale optimizer wraps, or itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def count_applied(optimizer: keras.optimizers.Optimizer) -> keras.Variable:
    """Returns the number of gradients applied, without those skipped.

    `iterations` counts groups of gradients if `gradient_accumulation_steps` is
    set, and so does not tell whether a single train step was skipped.

    Raises:
        ValueError: it is a `MultiOptimizer` with `PKMAdam`, which counts the
            steps that this one skips.
    """
    parts = getattr(optimizer, "optimizers", ())
    if any(isinstance(part, PKMAdam) for part in parts):
        raise ValueError(
            "`optimizer` must not be a `MultiOptimizer` that contains "
            "`PKMAdam`: it would count steps that `PKMAdam` skips. Received: "
            "one that does. Pass `PKMAdam` alone, which has a rate of its own "
            "for value tables, or use another optimizer for all variables."
        )
    return inner_of(optimizer)._iterations
