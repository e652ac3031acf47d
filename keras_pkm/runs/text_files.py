"""Text files of runs."""

import pathlib

from keras_pkm.runs.checksums import check_unchanged
from keras_pkm.runs.user_error import UserError


def read_text(path: pathlib.Path, flag: str, default: str = "") -> str:
    """Reads a text file.

    Args:
        path: The file.
        flag: The flag that named it, for the error.
        default: The result if the file is missing.

    Raises:
        UserError: it was changed since it was written, or is not UTF-8.
    """
    check_unchanged(path, flag)
    if not path.exists():
        return default
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{flag} must have a {path.name} that is UTF-8 text, but '{path}' "
            f"is not ({error}): put back a copy of it, or remove it"
        ) from error
