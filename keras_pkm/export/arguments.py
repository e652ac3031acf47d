"""Checks the arguments of the functions that export.

The names of arguments stand in backticks, and the commands in `export/` put the
names of their flags there.
"""

import numbers
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from keras_pkm.export.value_tables import DTYPES
from keras_pkm.files.checksums import compare_with_checksums

#: What can be exported: the values of `what`.
KINDS = ("encoder", "preprocessor", "mlm", "classifier", "qa")


class ArgumentError(ValueError):
    """A mistake in an argument, which the message names."""


def check_options(
    what: str | None,
    values_dtype: str,
    sequence_length: int | None,
    stride: int | None,
    answer_length: int | None,
    labels: Sequence[str],
    texts: int | None,
    keep_top: float,
    prune_unused: Sequence[str],
    compare: Sequence[str],
) -> None:
    """Finds what is impossible for any model, or would do nothing."""
    # A start, an end and a token, or two texts with tokens between them.
    shortest = 8 if what == "qa" or texts == 2 else 3
    for name, value, known in (
        ("what", what or KINDS[0], KINDS),
        ("values_dtype", values_dtype, DTYPES),
    ):
        if value not in known:
            _refuse(name, f"one of {', '.join(known)}", value)
    for name, number, least in (
        ("sequence_length", sequence_length, shortest),
        ("stride", stride, 1),
        ("answer_length", answer_length, 1),
    ):
        if number is not None and not (
            isinstance(number, numbers.Integral) and number >= least
        ):
            _refuse(name, f"at least {least}", number)
    if texts not in (None, 1, 2):
        _refuse("texts", "1 or 2", texts)
    if not 0 < keep_top <= 100:
        _refuse("keep_top", "above 0 and at most 100", keep_top)
    is_float32 = values_dtype == DTYPES[0]
    for suits, given in (
        (what == "classifier", {"labels": labels, "texts": texts}),
        (what == "qa", {"stride": stride, "answer_length": answer_length}),
        (
            what != "preprocessor",
            {
                "values_dtype": None if is_float32 else values_dtype,
                "prune_unused": prune_unused,
                "compare": compare,
            },
        ),
    ):
        for name, received in given.items():
            if received and not suits and what:
                raise ArgumentError(
                    f"`{name}` would do nothing with `what` {what}: leave it "
                    "out"
                )
    if what == "encoder" and sequence_length and not (prune_unused or compare):
        raise ArgumentError(
            "`sequence_length` would do nothing with `what` encoder without "
            "`prune_unused` or `compare`, because inputs may have any length: "
            "leave it out"
        )
    if keep_top < 100 and not prune_unused:
        raise ArgumentError(
            "`keep_top` needs text whose reads are counted: pass `prune_unused`"
        )


def check_texts(name: str, texts: Sequence[str]) -> None:
    """Checks that an argument is several strings."""
    if isinstance(texts, str) or not all(isinstance(t, str) for t in texts):
        _refuse(name, "a sequence of strings", repr(texts)[:80])


def check_new_directory(path: pathlib.Path) -> None:
    """Checks that `path` is free to be written."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ArgumentError(
            f"`path` must be new or empty, but '{path}' is not: pass another "
            "directory, or remove it"
        )


def check_unchanged(name: str, path: str | os.PathLike[str]) -> None:
    """Checks what an argument names against its checksums, if it has any."""
    checksums, change = compare_with_checksums(pathlib.Path(path))
    if change:
        raise ArgumentError(
            f"`{name}` must be as it was written, but in '{checksums.parent}' "
            f"{change}: put back a copy of it; or, if the change is wanted, "
            f"remove '{checksums}'"
        )


def _refuse(name: str, rule: str, received: Any) -> None:
    raise ArgumentError(f"`{name}` must be {rule}, received {received}")
