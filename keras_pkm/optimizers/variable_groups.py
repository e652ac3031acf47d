"""Groups variables by the rule that the optimizer applies to them."""

import logging
import re
from collections.abc import Sequence

import keras

logger = logging.getLogger(__name__)

_NEVER_DECAYED = re.compile(r"(^|/)(bias|gamma|beta)$")


def check_pattern(memory_pattern: str | None) -> str | None:
    """Returns a `memory_pattern`.

    Raises:
        ValueError: it is neither a regular expression nor `None`.
    """
    try:
        re.compile(memory_pattern or "")
    except (TypeError, re.error) as error:
        raise ValueError(
            "`memory_pattern` must be a regular expression, or None. Received: "
            f"memory_pattern={memory_pattern!r} ({error})."
        ) from error
    return memory_pattern


def group_variables(
    variables: Sequence[keras.Variable],
    memory_pattern: str | None,
    decays: bool,
) -> dict[str, list[keras.Variable]]:
    """Divides variables into groups and logs their sizes.

    Args:
        variables: The trainable variables.
        memory_pattern: Regular expression that is found in the paths of value
            tables, or None if there are none.
        decays: Whether there is weight decay at all.

    Returns:
        The variables, by the groups `"memory"`, `"decayed"` and
        `"not decayed"`.

    Raises:
        ValueError: the pattern matches no variable.
    """
    groups: dict[str, list[keras.Variable]] = {
        "memory": [],
        "decayed": [],
        "not decayed": [],
    }
    for variable in variables:
        path = getattr(variable, "path", variable.name)
        if memory_pattern and re.search(memory_pattern, path):
            group = "memory"
        elif decays and not _NEVER_DECAYED.search(path):
            group = "decayed"
        else:
            group = "not decayed"
        groups[group].append(variable)
    if memory_pattern is not None and not groups["memory"]:
        raise ValueError(
            "`memory_pattern` must match the path of a trainable variable. "
            f"Received: memory_pattern={memory_pattern!r}, which "
            f"matches none of {len(variables)}. Pass "
            "`memory_pattern=None` for a model without trainable values."
        )
    sizes = {
        group: f"{sum(v.shape.num_elements() for v in members):,}"
        for group, members in groups.items()
    }
    logger.info(
        "PKMAdam: %s parameters in %d value tables, %s that decay, %s others",
        sizes["memory"],
        len(groups["memory"]),
        sizes["decayed"],
        sizes["not decayed"],
    )
    return groups
