"""Tables with columns separated by tabs, some of which a spreadsheet saved."""

import codecs
import csv
import pathlib
from collections.abc import Sequence

from training.runs.user_error import UserError

# As many cells are not in quotes for their commas by accident.
_ENOUGH = 10
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def split_lines(data: bytes, path: pathlib.Path) -> list[bytes]:
    r"""Returns the lines of a table, in UTF-8 and without their ends.

    A byte order mark is dropped. UTF-16 with such a mark, a spreadsheet's
    "Unicode text", is converted. Only `\n` and `\r\n` end a line.
    """
    if data.startswith(_UTF16):
        try:
            data = data.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path} must be UTF-8 text, or whole UTF-16 text, received "
                f"damaged UTF-16 ({error.reason}): save it as UTF-8"
            ) from error
    data = data.removeprefix(codecs.BOM_UTF8)
    lines = data.split(b"\n")
    if b"\0" in lines[0]:
        raise UserError(
            f"{path}, line 1: a table must be UTF-8 text, received zero bytes, "
            "as in UTF-16: save it as UTF-8"
        )
    if len(lines) == 1 and b"\r" in data:
        raise UserError(
            f"{path}, line 1: lines must end with newlines, received carriage "
            "returns alone, the line ends of old Macs: save it with the line "
            "ends of Unix or Windows"
        )
    return [line.removesuffix(b"\r") for line in lines]


def why_columns(line: str, columns: int) -> str:
    """Returns why a line may have another number of columns, for errors."""
    received = line.count("\t") + 1
    if received > columns and line.endswith("\t"):
        return f"received {received}, since a tab ends the line: remove it"
    for name, character in (("commas", ","), ("semicolons", ";")):
        if received == 1 < columns <= line.count(character) + 1:
            return (
                f"received 1 and {name}: columns must be separated by tabs, "
                f"not by {name}"
            )
    return (
        f"received {received} (cells must not contain tabs or line ends, not "
        "even in quotes)"
    )


def find_broken_cell(lines: Sequence[str], columns: int) -> int | None:
    """Finds a cell in quotes that contains tabs or line ends."""
    is_right = [line.count("\t") + 1 == columns for line in lines]
    if all(is_right):
        return None
    reader = csv.reader(
        (f"{line}\n" for line in lines), "excel-tab", strict=True
    )
    first = 0
    while first < len(lines):
        try:
            row = next(reader)
        except csv.Error:
            row = []  # quotes that are no spreadsheet's
        end = reader.line_num
        if len(row) == columns and not all(is_right[first:end]):
            return first
        first = end
    return None


def is_quoted(cell: str) -> bool:
    """Whether a cell is in quotes, and those within it are doubled."""
    if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"':
        return False
    return '"' not in cell[1:-1].replace('""', "")


def unquote(cell: str) -> str:
    """Returns the content of a cell that may be in quotes."""
    return cell[1:-1].replace('""', '"') if is_quoted(cell) else cell


def are_all_quoted(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all cells but numbers are in quotes, those of a header too."""
    cells = {cell for row in rows for cell in row}
    return any(map(is_quoted, cells)) and all(
        is_quoted(cell) or not cell or _is_number(cell) for cell in cells
    )


def has_spreadsheet_quotes(
    header: Sequence[str], rows: Sequence[Sequence[str]]
) -> bool | None:
    """Tells a spreadsheet's quotes from those that belong to the text.

    In a table without quoting a quote is a character like any other. A
    spreadsheet puts a cell in quotes, and doubles those within it, if the cell
    contains a quote, a tab or a line end (most programs), or also a comma
    (Excel); or it does so with all cells but numbers. The whole table counts:

    - if a quote stands in a cell that is not written so, the quotes are text;
    - if all cells with quotes are written so, for one of these reasons, and
      one has a doubled quote, or all are in quotes, or ten are for a comma,
      they are a spreadsheet's;
    - if cells are in quotes for none of these reasons, the quotes are text;
    - everything else cannot be told: a few cells with commas are in quotes, a
      whole column is, or some cells follow the rule and others do not.
    """
    cells = {cell for row in (header, *rows) for cell in row}
    quoted = {cell for cell in cells if '"' in cell}
    if not all(map(is_quoted, quoted)):
        return False
    doubled = {cell for cell in quoted if '""' in cell[1:-1]}
    rest = quoted - doubled
    if not rest or are_all_quoted([header, *rows]):
        return bool(quoted)
    is_excel = all("," in cell for cell in rest) and not any(
        "," in cell for cell in cells - quoted
    )
    if is_excel and (doubled or len(rest) >= _ENOUGH):
        return True
    is_column = any(all(map(is_quoted, column)) for column in zip(*rows))
    return None if is_excel or doubled or is_column else False


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
