"""The list of figures, as `figures.toml` has it."""

import dataclasses
import pathlib
import tomllib
from typing import Any

from benchmarks.published import tables

ROOT = pathlib.Path(__file__).parents[2]
MEASURED = ROOT / "docs" / "measured"


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of pages, from `<!-- figures: NAME -->` to `<!-- end -->`."""

    # The name between the markers.
    name: str
    # The pages, as paths from the repository's root.
    pages: list[str]
    # The names of the figures that it shows.
    figures: list[str]
    # The function in `tables.py` that makes it, and its arguments.
    make: str
    arguments: dict[str, Any]
    # Whether its figures have one seed, which its first column says.
    one_seed: bool = False

    def markdown(self) -> str:
        """Returns it; a file that it needs may be missing."""
        made = getattr(tables, self.make)(MEASURED, **self.arguments)
        if not self.one_seed:
            return made
        return made.replace(" |", " (one seed) |", 1)


@dataclasses.dataclass(frozen=True)
class Figure:
    """Figures that one or a few commands measure together."""

    # The name of its directory in `docs/measured/`.
    name: str
    # The commands, as they stand on the pages. `{out}` stands for the directory
    # that they write.
    commands: list[str]
    # Files that the commands read from the data folder.
    needs: list[str] = dataclasses.field(default_factory=list)
    # Patterns of the files that are kept in `docs/measured/`.
    keeps: tuple[str, ...] = ("*.json",)
    # Pictures: what the commands call them, and where the pages have them, from
    # the repository's root.
    pictures: tuple[tuple[str, str], ...] = ()

    @property
    def tables(self) -> list[Table]:
        """The tables that show them."""
        return [table for table in TABLES if self.name in table.figures]

    @property
    def pages(self) -> list[str]:
        """The pages that show them."""
        pages = [page for table in self.tables for page in table.pages]
        return list(dict.fromkeys(pages))


def _table(
    name, pages, make="stored", figures=None, one_seed=False, **arguments
):
    # That of a single file shows the figures of its directory.
    figures = figures or [arguments["file"].split("/")[0]]
    return Table(name, pages, figures, make, arguments, one_seed)


_LIST = tomllib.loads(
    pathlib.Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
FIGURES = [Figure(**each) for each in _LIST["figures"]]
TABLES = [_table(**each) for each in _LIST["tables"]]
