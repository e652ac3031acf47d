"""Groups variables by the rule that the optimizer applies to them."""

import logging
import re
from collections.abc import Sequence

import keras

from keras_pkm.ops.value_tables import is_table

logger = logging.getLogger(__name__)

_NEVER_DECAYED = re.compile(r"(^|/)(bias|gamma|beta)$")


def group_variables(
    variables: Sequence[keras.Variable], decays: bool
) -> dict[str, list[keras.Variable]]:
    """Divides variables into groups and logs their sizes.

    Args:
        variables: The trainable variables.
        decays: Whether there is weight decay at all.

    Returns:
        The variables, by the groups `"memory"`, `"decayed"` and
        `"not decayed"`.
    """
    groups: dict[str, list[keras.Variable]] = {
        "memory": [],
        "decayed": [],
        "not decayed": [],
    }
    for variable in variables:
        path = getattr(variable, "path", variable.name)
        if is_table(variable):
            group = "memory"
        elif decays and not _NEVER_DECAYED.search(path):
            group = "decayed"
        else:
            group = "not decayed"
        groups[group].append(variable)
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
