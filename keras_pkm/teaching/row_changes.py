"""Rows of one value table, before and after they were changed."""

import dataclasses

import numpy as np

_DONE_BEFORE = {
    "applied": (
        "A patch can be applied only to a model that does not have it yet. "
        "Received: a model whose memory {number} has the rows of the patch: "
        "the patch has already been applied."
    ),
    "reverted": (
        "A patch can be reverted only in a model that has it. Received: a "
        "model whose memory {number} has the rows from before the patch: "
        "choose the model that was taught, or to which the patch was applied."
    ),
}


@dataclasses.dataclass(frozen=True)
class RowChanges:
    """Rows of one value table, before and after they were changed.

    Attributes:
        slots: int64 array of shape `(rows,)`: the slots that were changed, in
            ascending order.
        old: float32 array of shape `(rows, value_dim)`: their values before.
        new: float32 array of the same shape: their values after.
    """

    slots: np.ndarray
    old: np.ndarray
    new: np.ndarray

    @classmethod
    def between(cls, before: np.ndarray, after: np.ndarray) -> "RowChanges":
        """Returns the rows of a table whose bits differ.

        Args:
            before: float32 array of shape `(num_slots, value_dim)`.
            after: Likewise.
        """
        (slots,) = np.nonzero((_bits(before) != _bits(after)).any(axis=1))
        return cls(slots.astype("int64"), before[slots], after[slots])

    def __len__(self) -> int:
        return len(self.slots)

    def reversed(self) -> "RowChanges":
        """Returns the changes that undo these."""
        return RowChanges(self.slots, self.new, self.old)

    def check(self, present: np.ndarray, number: int, done: str) -> None:
        """Checks that a table has the rows that will be replaced.

        Args:
            present: The table's rows at `slots`.
            number: The memory's number, for the error.
            done: `"applied"` or `"reverted"`, for the error.

        Raises:
            ValueError: it has other rows.
        """
        differs = _differ(present, self.old)
        if not differs.any():
            return
        if not _differ(present, self.new).any():
            raise ValueError(_DONE_BEFORE[done].format(number=number))
        slot = self.slots[differs][0]
        raise ValueError(
            f"A patch can be {done} only if the model has the rows that it "
            f"expects. Received: a memory {number} in which "
            f"{differs.sum():,} of {len(self):,} rows differ, such as slot "
            f"{slot}. Another patch or training has changed them: revert "
            "patches that share rows in the reverse order."
        )


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether two rows differ in any bit, for each pair of rows."""
    return (_bits(a) != _bits(b)).any(axis=1)


def _bits(rows: np.ndarray) -> np.ndarray:
    # Compared by bits: -0 differs from 0, and NaN equals itself.
    return np.ascontiguousarray(rows, "float32").view("uint32")
