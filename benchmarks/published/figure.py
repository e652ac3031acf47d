"""What a published figure is: its commands and its tables."""

import dataclasses
import pathlib
import re
from collections.abc import Callable

ROOT = pathlib.Path(__file__).parents[2]
MEASURED = ROOT / "docs" / "measured"


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of a page, from `<!-- figures: NAME -->` to `<!-- end -->`."""

    # The page, as a path from the repository's root.
    page: str
    # The name between the markers.
    name: str
    # Function of the directory with what was measured. It returns the table as
    # Markdown.
    make: Callable[[pathlib.Path], str]


@dataclasses.dataclass(frozen=True)
class Figure:
    """Figures that one or a few commands measure together."""

    # The name of its directory in `docs/measured/`.
    name: str
    # The commands, as they stand on the pages. `{out}` stands for the directory
    # that they write.
    commands: tuple[str, ...]
    # The tables that are written from the results.
    tables: tuple[Table, ...] = ()
    # Pages with further figures of these commands, in text.
    pages: tuple[str, ...] = ()
    # Files that the commands read from the data folder.
    needs: tuple[str, ...] = ()
    # Patterns of the files that are kept in `docs/measured/`.
    keeps: tuple[str, ...] = ("*.md", "*.json")
    # Pictures: what the commands call them, and where the pages have them, from
    # the repository's root.
    pictures: tuple[tuple[str, str], ...] = ()

    @property
    def kept(self) -> pathlib.Path:
        """The directory with what was measured."""
        return MEASURED / self.name

    @property
    def all_pages(self) -> list[str]:
        """All pages that show its figures."""
        return list(
            dict.fromkeys([*(each.page for each in self.tables), *self.pages])
        )


def report_table(
    file: str,
    heading: str | None = None,
    columns: dict[str, str] | None = None,
    without: tuple[str, ...] = (),
) -> Callable[[pathlib.Path], str]:
    """Returns a function that reads a table from a Markdown report."""

    def make(directory: pathlib.Path) -> str:
        text = (directory / file).read_text(encoding="utf-8")
        rows = find_table(text, heading)
        return select([row for row in rows if row[0] not in without], columns)

    return make


def printed_tables(file: str) -> Callable[[pathlib.Path], str]:
    """Returns a function that reads all tables that a command printed."""

    def make(directory: pathlib.Path) -> str:
        text = (directory / file).read_text(encoding="utf-8")
        tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
        if not tables:
            raise ValueError(f"{directory / file} has no tables.")
        return "\n\n".join(select(find_table(table, None)) for table in tables)

    return make


def find_table(text: str, heading: str | None) -> list[list[str]]:
    """Returns the cells of the first table below a heading of a report."""
    lines = text.splitlines()
    if heading is not None:
        headings = [re.sub(r"^#+ ", "", line) for line in lines]
        if heading not in headings:
            raise ValueError(f"The report has no heading {heading!r}.")
        lines = lines[headings.index(heading) + 1 :]
    rows = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("| ").split("|")])
        elif rows or line.startswith("#"):
            break
    if not rows:
        raise ValueError(f"The report has no table below {heading!r}.")
    return rows


def select(rows: list[list[str]], columns: dict[str, str] | None = None) -> str:
    """Returns a Markdown table of some of the columns."""
    if columns is not None:
        places = [rows[0].index(name) for name in columns]
        rows = [[row[place] for place in places] for row in rows]
        rows[0] = list(columns.values())
    # Alignment is kept, widths are not: a new figure then changes one row.
    rules = [re.sub("-+", "---", cell) for cell in rows[1]]
    return "\n".join(
        f"| {' | '.join(row)} |" for row in [rows[0], rules, *rows[2:]]
    )
