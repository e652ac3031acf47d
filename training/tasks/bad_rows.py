"""Rows of a data set that cannot be used: an error, or a list."""

import dataclasses
import pathlib

from keras_pkm.runs.user_error import UserError


@dataclasses.dataclass(frozen=True)
class BadRow:
    """Where a row is and what is wrong with it.

    Attributes:
        path: The file.
        place: Where in it, such as "line 7".
        reason: The rule that the row breaks, and what was received.
    """

    path: pathlib.Path
    place: str
    reason: str

    def __str__(self):
        return f"{self.path}, {self.place}: {self.reason}"


class BadRows:
    """Collects bad rows, or raises at the first.

    Args:
        skip: bool. Whether bad rows are left out, `--skip-bad-rows`.
    """

    def __init__(self, skip: bool = False):
        self.skip = skip
        self.rows: list[BadRow] = []

    def add(self, path: pathlib.Path | str, place: str, reason: str) -> None:
        """Takes a bad row.

        Raises:
            UserError: bad rows are not left out.
        """
        row = BadRow(path, place, reason)
        if not self.skip:
            raise UserError(
                f"{row}. Mend the file, or pass --skip-bad-rows to leave such "
                "rows out"
            )
        self.rows.append(row)

    def nothing_left(self, path: pathlib.Path | str, what: str) -> UserError:
        """Returns the error that a file has nothing that can be used.

        Args:
            path: The file.
            what: What it must hold, such as "questions".
        """
        of_this_file = [row for row in self.rows if str(row.path) == str(path)]
        if not of_this_file:
            return UserError(f"{path} must hold {what}, but has none")
        return UserError(
            f"{path} must hold {what}, but all {len(of_this_file):,} were left "
            f"out by --skip-bad-rows, the first as: {of_this_file[0]}"
        )

    def report(self, shown: int = 20) -> str:
        """Returns how many rows were left out, and the first of them."""
        lines = [f"{len(self.rows):,} bad rows were left out:"]
        lines += [f"- {row}" for row in self.rows[:shown]]
        if len(self.rows) > shown:
            lines.append(f"- and {len(self.rows) - shown:,} more")
        return "\n".join(lines)
