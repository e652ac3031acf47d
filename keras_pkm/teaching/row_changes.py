"""Rows of one value table, before and after they were changed."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

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


class TableCopy(NamedTuple):
    """A copy of a value table: its values, and its tags if it has any."""

    values: np.ndarray
    tags: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class RowChanges:
    """Rows of one value table, before and after they were changed.

    Attributes:
        slots: int64 array of shape `(rows,)`: the slots that were changed, or
            that these need, in ascending order.
        old: float32 array of shape `(rows, value_dim)`: their values before.
        new: float32 array of the same shape: their values after.
        old_tags: int32 array of shape `(rows,)`: their tags before; `None` in
            tables without tags.
        new_tags: Likewise, their tags after.
    """

    slots: np.ndarray
    old: np.ndarray
    new: np.ndarray
    old_tags: np.ndarray | None = None
    new_tags: np.ndarray | None = None

    @classmethod
    def between(
        cls,
        before: TableCopy,
        after: TableCopy,
        needed: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    ) -> "RowChanges":
        """Returns the rows of a table whose bits differ.

        Args:
            before: The table before.
            after: The table after.
            needed: `Memory.needed_rows`. Rows that it names are among the
                changes, so that they must be there, even if they are the same
                before and after.
        """
        both = (before, after)
        differs = _differ(
            *(each.values for each in both), *(each.tags for each in both)
        )
        slots = np.nonzero(differs)[0].astype("int64")
        if needed is not None:
            for table in both:
                if table.tags is not None:
                    slots = np.union1d(slots, needed(slots, table.tags))
        return cls(
            slots,
            *(each.values[slots] for each in both),
            *(None if each.tags is None else each.tags[slots] for each in both),
        )

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def num_changed(self) -> int:
        """The number of rows that are not the same before and after."""
        of_tags = (self.old_tags, self.new_tags)
        return int(_differ(self.old, self.new, *of_tags).sum())

    def reversed(self) -> "RowChanges":
        """Returns the changes that undo these."""
        return RowChanges(
            self.slots, self.new, self.old, self.new_tags, self.old_tags
        )

    def check(
        self,
        present: np.ndarray,
        number: int,
        done: str,
        tags: np.ndarray | None = None,
    ) -> None:
        """Checks that a table has the rows that will be replaced.

        Args:
            present: The table's rows at `slots`.
            number: The memory's number, for the error.
            done: `"applied"` or `"reverted"`, for the error.
            tags: The tags of these rows, if the table has tags.

        Raises:
            ValueError: it has other rows.
        """
        differs = _differ(present, self.old, tags, self.old_tags)
        if not differs.any():
            return
        if not _differ(present, self.new, tags, self.new_tags).any():
            raise ValueError(_DONE_BEFORE[done].format(number=number))
        slot = self.slots[differs][0]
        raise ValueError(
            f"A patch can be {done} only if the model has the rows that it "
            f"expects. Received: a memory {number} in which "
            f"{differs.sum():,} of {len(self):,} rows differ, such as slot "
            f"{slot}. Another patch or training has changed them, or an "
            "earlier patch is missing: apply patches in the order in which "
            "they were made, and revert those that share rows in the reverse "
            "order."
        )


def _differ(
    a: np.ndarray,
    b: np.ndarray,
    tags_a: np.ndarray | None,
    tags_b: np.ndarray | None,
) -> np.ndarray:
    """Whether two rows differ in any bit, for each pair of rows."""
    differs = (_bits(a) != _bits(b)).any(axis=1)
    if tags_a is not None and tags_b is not None:
        differs |= tags_a != tags_b
    return differs


def _bits(rows: np.ndarray) -> np.ndarray:
    # Compared by bits: -0 differs from 0, and NaN equals itself.
    return np.ascontiguousarray(rows, "float32").view("uint32")
