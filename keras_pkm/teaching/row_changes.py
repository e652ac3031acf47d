"""Rows of one value table, before and after they were changed."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class RowChanges:
    """Rows of one value table, before and after they were changed.

    Attributes:
        slots: int64 array of shape `(rows,)`, the slots that were changed, in
            ascending order.
        old: float32 array of shape `(rows, value_dim)`, their values before.
        new: float32 array of the same shape, their values after.
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
        """Checks that a table has the rows that are to be replaced.

        Args:
            present: The table's rows at `slots`.
            number: The memory's number, for the error.
            done: What is to be done, `"applied"` or `"reverted"`, likewise.

        Raises:
            ValueError: it has others.
        """
        differs = _differ(present, self.old)
        if not differs.any():
            return
        if not _differ(present, self.new).any():
            found = "been applied" if done == "applied" else "not been applied"
            raise ValueError(
                f"A patch must not be {done} twice. Received: a patch whose "
                f"rows of memory {number} are there as if it had {found}."
            )
        slot = self.slots[differs][0]
        raise ValueError(
            f"A patch must find the rows that it expects to be {done}. "
            f"Received: a memory {number} of which {differs.sum():,} of "
            f"{len(self):,} rows are others, such as that of slot {slot}. "
            "Another patch has changed them, or training: revert patches that "
            "share rows in the reverse order."
        )


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether two rows differ in any bit, for each pair of rows."""
    return (_bits(a) != _bits(b)).any(axis=1)


def _bits(rows: np.ndarray) -> np.ndarray:
    # -0 is not 0 here, and NaN is itself.
    return np.ascontiguousarray(rows, "float32").view("uint32")
