"""The learning rate of value tables: a number, a schedule, or a multiple."""

import re
from collections.abc import Callable
from typing import Any
from typing import TypeAlias

import keras

from keras_pkm.ops.arguments import finite

#: A schedule of learning rates.
Schedule: TypeAlias = keras.optimizers.schedules.LearningRateSchedule

_MULTIPLE = re.compile(r"(\d+(\.\d*)?(e[+-]?\d+)?)x")


def parse_multiple(rate: Any) -> float | None:
    """Returns the factor in a multiple, or `None` for anything but a string.

    Args:
        rate: A multiple such as `"10x"` or `"2.5x"`, or any other rate.

    Raises:
        ValueError: it is another string.
    """
    if not isinstance(rate, str):
        return None
    found = _MULTIPLE.fullmatch(rate)
    if found is None:
        raise ValueError(
            "`memory_learning_rate` must be a number, a "
            "`LearningRateSchedule`, a function without arguments, or a "
            'multiple of `learning_rate` such as "10x". Received: '
            f"memory_learning_rate={rate!r}."
        )
    return float(found[1])


def check_rate(name: str, rate: Any) -> float | Schedule | Callable[[], Any]:
    """Returns a learning rate as Keras' optimizers take it.

    Args:
        name: The argument.
        rate: A number, a schedule or its config, or a function without
            arguments that returns the rate.

    Raises:
        ValueError: it is something else, or below 0.
    """
    if isinstance(rate, dict):
        rate = keras.saving.deserialize_keras_object(rate)
    if callable(rate):
        return rate
    try:
        return finite(name, rate, least=0)
    except ValueError as error:
        raise ValueError(
            f"{error} It may also be a `LearningRateSchedule`, or a function "
            "without arguments that returns the rate."
        ) from None


def check_memory_rate(
    rate: Any,
) -> float | Schedule | Callable[[], Any] | str:
    """Returns the rate of value tables, which may be a multiple.

    Args:
        rate: What `check_rate` takes, or a multiple such as `"10x"`.

    Raises:
        ValueError: it is something else, or below 0.
    """
    if parse_multiple(rate) is not None:
        return rate
    return check_rate("memory_learning_rate", rate)


def serialize_rate(
    rate: keras.Variable | Schedule | Callable[[], Any] | str,
) -> float | str | dict[str, Any]:
    """Returns a rate as a value that JSON and `check_memory_rate` accept."""
    if isinstance(rate, keras.Variable):
        return float(rate.numpy())
    return keras.saving.serialize_keras_object(rate)
