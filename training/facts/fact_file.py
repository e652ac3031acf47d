"""Facts from a TSV file."""

import pathlib

from keras_pkm.runs.user_error import UserError
from training.facts.text_facts import Fact

_COLUMNS = ("subject", "relation", "value")


def read_fact_file(path: pathlib.Path, flag: str = "--facts") -> list[Fact]:
    """Reads a file with one fact a line: subject, relation, value.

    Columns are separated by tabs. Empty lines are skipped, and so is a first
    line that names the columns. Repeated facts count once.

    Args:
        path: The file, UTF-8.
        flag: The flag that named it, for the error.

    Raises:
        UserError: the file cannot be read or has no fact, a column is missing
            or empty, or a subject has two values for a relation.
    """
    facts = {}
    for number, line in enumerate(_read_lines(path, flag), 1):
        if not line.strip():
            continue
        cells = tuple(cell.strip() for cell in line.split("\t"))
        place = f"{path}, line {number}"
        if number == 1 and tuple(map(str.lower, cells)) == _COLUMNS:
            continue
        if len(cells) != len(_COLUMNS):
            raise UserError(
                f"{place}: a fact must have three columns, separated by tabs: "
                f"subject, relation, value; received {len(cells)}"
            )
        for name, cell in zip(_COLUMNS, cells):
            if not cell:
                raise UserError(
                    f"{place}: the {name} must not be empty. Fill it in, or "
                    "remove the line"
                )
        fact = Fact(*cells, place)
        earlier = facts.setdefault(cells[:2], fact)
        if earlier.value != fact.value:
            raise UserError(
                f"{place}: a subject must have one value for a relation, but "
                f"{fact.relation!r} of {fact.subject!r} is {fact.value!r} "
                f"here, and {earlier.value!r} in {earlier.place}"
            )
    if not facts:
        raise UserError(f"{path} must contain facts, but has none")
    return list(facts.values())


def _read_lines(path, flag):
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{flag} must name a file of facts, but '{path}' cannot be read: "
            f"{error.strerror}"
        ) from error
    lines = []
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            lines.append(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}, line {number}: facts must be UTF-8 text, received "
                f"{error.object[error.start : error.end]!r}"
            ) from error
    return lines
