"""Facts from a TSV file."""

import pathlib

from training.corpora.tab_separated import is_quoted
from training.corpora.tab_separated import split_lines
from training.corpora.tab_separated import unquote
from training.corpora.tab_separated import why_columns
from training.facts.text_facts import Fact
from training.runs.user_error import UserError

_COLUMNS = ("subject", "relation", "value")


def read_fact_file(path: pathlib.Path, flag: str = "--facts") -> list[Fact]:
    """Reads a file with one fact a line: subject, relation, value.

    Columns are separated by tabs. Empty lines are skipped, and so is a first
    line that names the columns. Repeated facts count once. A cell that begins
    with a quote is one that a spreadsheet has put in quotes: these are taken
    off, and doubled quotes within it are single ones. A quote elsewhere is a
    character like any other.
    """
    facts: dict[tuple[str, str], Fact] = {}
    for number, line in enumerate(read_lines(path, flag), 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        columns = line.split("\t")
        if len(columns) != len(_COLUMNS):
            raise UserError(
                f"{place}: a fact must have three columns, separated by tabs: "
                f"subject, relation, value; {why_columns(line, len(_COLUMNS))}"
            )
        cells = tuple(read_cell(cell, place) for cell in columns)
        if number == 1 and tuple(map(str.lower, cells)) == _COLUMNS:
            continue
        for name, cell in zip(_COLUMNS, cells):
            if not cell:
                raise UserError(
                    f"{place}: the {name} must not be empty. Fill it in, or "
                    "remove the line"
                )
        subject, relation, value = cells
        fact = Fact(subject, relation, value, place)
        earlier = facts.setdefault((subject, relation), fact)
        if earlier.value != fact.value:
            raise UserError(
                f"{place}: a subject must have one value for a relation, but "
                f"{fact.relation!r} of {fact.subject!r} is {fact.value!r} "
                f"here, and {earlier.value!r} in {earlier.place}"
            )
    if not facts:
        raise UserError(f"{path} must contain facts, but has none")
    return list(facts.values())


def read_lines(path: pathlib.Path, flag: str) -> list[str]:
    """Reads the lines of a file of UTF-8 text."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{flag} must name a file, but '{path}' cannot be read: "
            f"{error.strerror}"
        ) from error
    lines = []
    for number, line in enumerate(split_lines(data, path), 1):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}, line {number}: it must be UTF-8 text, received "
                f"{error.object[error.start : error.end]!r}"
            ) from error
    return lines


def read_cell(cell: str, place: str) -> str:
    """Returns the content of a cell, which a spreadsheet may have quoted."""
    cell = cell.strip()
    if cell.startswith('"') and not is_quoted(cell):
        doubled = cell.replace('"', '""')
        raise UserError(
            f"{place}: a cell that begins with a quote must be as spreadsheets "
            "write it: it ends with a quote, quotes within it are doubled, and "
            f"it has no tabs or line ends; received {cell!r}. If the quote is "
            f'part of the text, write "{doubled}"'
        )
    return unquote(cell).strip()
