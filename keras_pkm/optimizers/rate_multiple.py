"""A learning rate that is written as a multiple of another, such as "10x"."""

import re
from typing import Any

_MULTIPLE = re.compile(r"(\d+(\.\d*)?(e[+-]?\d+)?)x")


def parse_multiple(rate: Any) -> float | None:
    """Returns the number of a multiple, or `None` for anything but a string.

    Args:
        rate: Such as `"10x"` or `"2.5x"`.

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
