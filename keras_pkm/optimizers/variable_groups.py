"""Groups variables by the rule that the optimizer applies to them."""

import dataclasses
import logging
import math
import re
from collections.abc import Sequence

import keras

from keras_pkm.ops.value_tables import is_table

logger = logging.getLogger(__name__)

_NEVER_DECAYED = re.compile(r"(^|/)(\w*bias|gamma|beta)$")


@dataclasses.dataclass(frozen=True)
class NotDecayed:
    """What `exclude_from_weight_decay` was given.

    Attributes:
        variables: Variables.
        names: Strings, any of which is in the name of a variable.
    """

    variables: Sequence[keras.Variable] = ()
    names: Sequence[str] = ()

    def __contains__(self, variable: keras.Variable) -> bool:
        return any(each is variable for each in self.variables) or any(
            re.search(name, variable.name) for name in self.names
        )


def group_variables(
    variables: Sequence[keras.Variable], not_decayed: NotDecayed | None
) -> dict[str, list[keras.Variable]]:
    """Divides variables into groups and logs their sizes.

    Args:
        variables: The trainable variables.
        not_decayed: What does not decay, besides tables, biases, vectors and
            scalars, such as the parameters of norms; `None` if there is no
            weight decay at all.

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
        elif not (
            not_decayed is None
            or variable in not_decayed
            or len(variable.shape) < 2
            or _NEVER_DECAYED.search(path)
        ):
            group = "decayed"
        else:
            group = "not decayed"
        groups[group].append(variable)
    sizes = {
        group: f"{sum(math.prod(v.shape) for v in members):,}"
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
