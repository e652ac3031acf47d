"""The slots of a memory that an optimizer may train."""

from collections.abc import Sequence

import keras
import numpy as np


def assign_chosen_slots(
    chosen: keras.Variable | None,
    values: keras.Variable,
    slots: Sequence[int] | np.ndarray,
) -> None:
    """Chooses slots; they replace any earlier choice.

    Args:
        chosen: A mask of the table's slots, or `None` if there is none.
        values: The value table.
        slots: The numbers of the slots.

    Raises:
        ValueError: there is no variable, or a number is out of range.
    """
    if chosen is None:
        raise ValueError(
            "`values` must be a value table of an optimizer that was made with "
            "`only_chosen_slots=True` and has been built. Received: "
            f"values={values.path!r}."
        )
    (num_slots,) = chosen.shape
    slots = np.asarray(slots)
    if slots.size and (
        slots.dtype.kind not in "iu"
        or slots.min() < 0
        or slots.max() >= num_slots
    ):
        raise ValueError(
            f"`slots` must be integers from 0 to {num_slots - 1}, the slots of "
            f"this memory. Received: {slots!r}."
        )
    mask = np.zeros(num_slots, "bool")
    mask[slots.astype("int64")] = True
    chosen.assign(mask)
