"""Reads documents from text files, in which blank lines separate them."""

import codecs
import glob
import logging
import os
import re
from collections.abc import Iterator
from collections.abc import Sequence

from training.runs.user_error import UserError

logger = logging.getLogger("keras_pkm")

# With `errors="surrogateescape"` each invalid byte becomes a lone surrogate,
# which valid UTF-8 cannot contain.
_UNREADABLE = re.compile("[\x00\udc80-\udcff]")
_REPLACEMENT = "\ufffd"
_UNREADABLE_SHARE = 0.01  # more than this, and a file is not text
_CHUNK_BYTES = 2**20
# The maximum length of a document. Longer ones are split, so that a file
# without blank lines need not fit in memory.
_DOCUMENT_LENGTH = 2**20


def find_text_files(spec: str) -> tuple[str, ...]:
    """Returns the files that match a list of names and globs."""
    if os.path.isfile(spec):  # a comma in its name
        return (spec,)
    files = []
    for pattern in filter(None, map(str.strip, spec.split(","))):
        pattern = os.path.expanduser(pattern)
        if os.path.exists(pattern) or not glob.has_magic(pattern):
            files.append(pattern)
            continue
        matches = glob.glob(pattern, recursive=True)
        matches = sorted(path for path in matches if os.path.isfile(path))
        if not matches:
            raise UserError(
                f"the corpus glob {pattern!r} must match a file, but matches "
                "none: check the folder, and quote the glob in the shell"
            )
        files += matches
    if not files:
        raise UserError(
            f"the corpus must name a text file, received {spec!r}: pass a "
            "file, a glob, 'python-docs' or 'tfds:NAME'"
        )
    return tuple(dict.fromkeys(files))


def check_text_files(paths: Sequence[str]) -> None:
    """Reads all files once; logs a warning about bytes that are not text."""
    places = []
    total = 0
    for path in paths:
        count, line = _find_unreadable(path)
        total += count
        if count:
            places.append(f"{path} (first in line {line:,})")
    if total:
        logger.warning(
            "%s bytes of the corpus are not valid UTF-8 (or are NUL) and are "
            "read as U+FFFD, in: %s",
            f"{total:,}",
            ", ".join(places),
        )


def _find_unreadable(path: str) -> tuple[int, int]:
    """Returns the number of bytes that are not text, and the first's line."""
    if not os.path.exists(path):
        raise UserError(
            f"the corpus file {path!r} does not exist: check the name, or "
            "pass 'python-docs' or 'tfds:NAME'"
        )
    if not os.path.isfile(path):
        raise UserError(
            f"the corpus must be made of regular files, but {path!r} is none: "
            f"for a folder's files pass a glob such as {path.rstrip('/')}/*.txt"
        )
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
    unreadable, line, lines = 0, 0, 1
    has_text = False
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            while chunk := file.read(_CHUNK_BYTES):
                text = decoder.decode(chunk)
                if not unreadable and (first := _UNREADABLE.search(text)):
                    line = lines + text.count("\n", 0, first.start())
                lines += text.count("\n")
                unreadable += len(_UNREADABLE.findall(text))
                has_text = has_text or bool(text.strip())
    except OSError as error:
        raise UserError(
            f"the corpus file {path!r} cannot be read ({error.strerror}): "
            "check its permissions"
        ) from error
    # The rest of a character that the end of the file cuts off.
    rest = len(decoder.decode(b"", final=True))
    if rest and not unreadable:
        line = lines
    unreadable += rest
    if not has_text:
        raise UserError(
            f"the corpus file {path!r} must contain text, but is empty or only "
            f"white space ({size} bytes): remove it from the corpus"
        )
    if unreadable > _UNREADABLE_SHARE * size:
        raise UserError(
            f"the corpus file {path!r} must be UTF-8 text, but {unreadable} "
            f"of its {size} bytes are not, first in line {line:,}: convert "
            "it, or remove it from the corpus"
        )
    return unreadable, line


def read_documents(paths: Sequence[str]) -> Iterator[str]:
    """Yields the documents: consecutive non-blank lines, joined by newlines.

    Bytes that are not text are read as U+FFFD, a byte order mark is dropped,
    and a carriage return ends a line like a newline.
    """
    for path in paths:
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            lines: list[str] = []
            length = 0
            for line in file:
                line = line.strip()
                if lines and (not line or length > _DOCUMENT_LENGTH):
                    yield _document(lines)
                    lines = []
                    length = 0
                if line:
                    lines.append(line)
                    length += len(line)
            if lines:
                yield _document(lines)


def _document(lines: list[str]) -> str:
    return _UNREADABLE.sub(_REPLACEMENT, "\n".join(lines))
