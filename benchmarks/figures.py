#!/usr/bin/env python
"""Measures the figures of the README and the documentation, and writes them.

python benchmarks/figures.py
python benchmarks/figures.py --measure start --data texts
python benchmarks/figures.py --measure stale --data texts
python benchmarks/figures.py --unaffected start --because "Only text changed."
"""

import pathlib
import sys
from typing import Annotated

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tyro
from tabulate import tabulate

from benchmarks.published.figure import MEASURED
from benchmarks.published.figure import Table
from benchmarks.published.figure import find_table
from benchmarks.published.figure import select
from benchmarks.published.measure import measure
from benchmarks.published.pages import write_table
from benchmarks.published.registry import FIGURES
from benchmarks.published.stamps import read_stamps
from benchmarks.published.stamps import stamp
from benchmarks.published.stamps import stamp_unaffected
from benchmarks.published.stamps import state
from benchmarks.published.stamps import state_with_reason

STALE = "stale"


def main(
    figures: Annotated[tuple[str, ...], tyro.conf.arg(name="measure")] = (),
    again: bool = False,
    write: bool = False,
    unaffected: tuple[str, ...] = (),
    because: str = "",
    data: pathlib.Path = pathlib.Path("."),
    runs: pathlib.Path = pathlib.Path("runs/figures"),
) -> int:
    """Shows which figures are fresh, or measures some of them.

    Without arguments it lists all figures with the pages that show them, their
    commands, the day when they were measured, and whether the code that they
    measure has changed since. It is part of a release to look at this list.

    Args:
        figures: Names of figures to measure, or "stale" for all that are not
            fresh. A measurement that was stopped goes on where it was.
        again: With --measure, measure from the beginning.
        write: Write the tables of all figures into the pages, without
            measuring.
        unaffected: Names of figures that a change of the code cannot have
            changed, so that they are not stale. The list shows the reason.
        because: The reason, for --unaffected.
        data: Folder with the texts that the commands read.
        runs: Folder for the commands' working directories.

    Returns:
        The exit code.
    """
    names = [figure.name for figure in FIGURES]
    for flag, given, allowed in (
        ("--measure", figures, [STALE, *names]),
        ("--unaffected", unaffected, list(read_stamps())),
    ):
        unknown = [name for name in given if name not in allowed]
        if unknown:
            return _refuse(
                f"{flag} takes {', '.join(allowed) or 'nothing yet'}, received "
                f"{', '.join(unknown)}."
            )
    if bool(unaffected) != bool(because):
        return _refuse("--unaffected and --because need each other.")
    for figure in FIGURES:
        if figure.name in unaffected:
            stamp_unaffected(figure, because)
    failed = False
    for figure in FIGURES:
        stale = STALE in figures and state(figure) != "fresh"
        if not stale and figure.name not in figures:
            continue
        code = figure.code
        try:
            measure(figure, data, runs, again)
        except RuntimeError as error:
            print(f"error: {error}", file=sys.stderr)
            failed = True
            continue
        stamp(figure, code)
        write_tables(figure)
    if write:
        for figure in FIGURES:
            write_tables(figure)
    if write or figures:
        write_table(OVERVIEW, OVERVIEW.make(MEASURED))
    print(overview(with_state=True))
    return 1 if failed else 0


def _refuse(message):
    print(f"error: {message}", file=sys.stderr)
    return 2


def write_tables(figure):
    """Writes a figure's tables into the pages, where they can be made."""
    for table in figure.tables:
        try:
            if write_table(table, table.make(figure.kept)):
                print(f"{table.page}: wrote {table.name}")
        except FileNotFoundError as error:
            print(f"{table.page}: {table.name} stays as it is: {error}")


def overview(with_state=False):
    """A table of all figures, as Markdown."""
    stamps = read_stamps()
    rows = [
        [
            figure.name,
            ", ".join(figure.all_pages),
            "<br>".join(
                f"`{command.format(out='OUT')}`" for command in figure.commands
            ),
            stamps[figure.name].date if figure.name in stamps else "-",
            state_with_reason(figure),
        ]
        for figure in FIGURES
    ]
    header = ["figures", "pages", "commands", "measured", "state"]
    if not with_state:
        header, *rows = (row[:-1] for row in [header, *rows])
    return tabulate(rows, header, tablefmt="github", disable_numparse=True)


OVERVIEW = Table(
    "docs/measured/README.md",
    "overview",
    lambda _: select(find_table(overview(), None)),
)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
