"""The learning rate of value tables: a number, a schedule, or a multiple."""

import re
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
            "`memory_learning_rate` must be a float, a `LearningRateSchedule`, "
            'or a multiple of `learning_rate` such as "10x". Received: '
            f"memory_learning_rate={rate!r}."
        )
    return float(found[1])


def make_rate(
    rate: float | str | dict[str, Any] | Schedule,
) -> keras.Variable | Schedule | str:
    """Returns a rate: a number as a variable, others as they are.

    Args:
        rate: A float, a schedule or its config, or a multiple such as `"10x"`.

    Raises:
        ValueError: it is something else, or below 0.
    """
    if parse_multiple(rate) is not None:
        return rate
    if isinstance(rate, dict):
        rate = keras.saving.deserialize_keras_object(rate)
    if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        return rate
    if not isinstance(rate, float):
        raise ValueError(
            "`memory_learning_rate` must be a float or a "
            "`LearningRateSchedule`. Received: "
            f"memory_learning_rate={rate!r}."
        )
    return keras.Variable(
        finite("memory_learning_rate", rate, least=0),
        name="memory_learning_rate",
        dtype="float32",
        trainable=False,
        aggregation="only_first_replica",
    )


def serialize_rate(
    rate: keras.Variable | Schedule | str,
) -> float | str | dict[str, Any]:
    """Returns a rate as a value that JSON and `make_rate` accept."""
    if isinstance(rate, keras.Variable):
        return float(rate.numpy())
    return keras.saving.serialize_keras_object(rate)
