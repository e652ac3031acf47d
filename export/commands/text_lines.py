"""Reads text files line by line."""

from collections.abc import Sequence

from training.runs.user_error import UserError


def read_lines(paths: Sequence[str]) -> list[str]:
    """Returns the lines of text files that are not blank."""
    lines = []
    for path in paths:
        try:
            with open(path, encoding="utf-8-sig") as file:
                lines += [line for line in map(str.strip, file) if line]
        except OSError as error:
            raise UserError(
                f"a text file must be readable, but '{path}' is not "
                f"({error.strerror}): pass another one"
            ) from error
        except UnicodeDecodeError as error:
            raise UserError(
                f"a text file must be UTF-8, but '{path}' is not "
                f"({error.reason}): convert it"
            ) from error
    if not lines:
        raise UserError(
            f"text files must contain text, received {', '.join(paths)} "
            "with none"
        )
    return lines
