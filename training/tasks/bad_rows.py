"""Handles rows of a data set that cannot be used."""

import dataclasses
import pathlib

from training.runs.user_error import UserError


@dataclasses.dataclass(frozen=True)
class BadRow:
    """A row that cannot be used, and the reason."""

    # The file.
    path: pathlib.Path | str
    # The position in the file, such as "line 7".
    place: str
    # The rule that the row breaks, and what was received.
    reason: str

    def __str__(self) -> str:
        return f"{self.path}, {self.place}: {self.reason}"


class BadRows:
    """Collects bad rows, or raises an error at the first."""

    def __init__(self, skip: bool = False):
        self.skip = skip
        self.rows: list[BadRow] = []

    def add(self, path: pathlib.Path | str, place: str, reason: str) -> None:
        """Adds a bad row."""
        row = BadRow(path, place, reason)
        if not self.skip:
            raise UserError(
                f"{row}. Correct the file, or pass --skip-bad-rows to leave "
                "such rows out"
            )
        self.rows.append(row)

    def nothing_left(self, path: pathlib.Path | str, what: str) -> UserError:
        """Returns the error for a file without any usable row."""
        of_this_file = [row for row in self.rows if str(row.path) == str(path)]
        if not of_this_file:
            return UserError(f"{path} must contain {what}, but has none")
        return UserError(
            f"{path} must contain {what}, but all {len(of_this_file):,} were "
            f"left out by --skip-bad-rows, the first as: {of_this_file[0]}"
        )

    def report(self, shown: int = 20) -> str:
        """Returns the number of skipped rows, and a list of the first ones."""
        lines = [f"{len(self.rows):,} bad rows were left out:"]
        lines += [f"- {row}" for row in self.rows[:shown]]
        if len(self.rows) > shown:
            lines.append(f"- and {len(self.rows) - shown:,} more")
        return "\n".join(lines)
