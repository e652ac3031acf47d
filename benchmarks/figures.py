#!/usr/bin/env python
"""Measures the figures of the README and the documentation, and writes them.

python benchmarks/figures.py
python benchmarks/figures.py --measure start --data texts
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
from benchmarks.published.stamps import current_commit
from benchmarks.published.stamps import read_stamps
from benchmarks.published.stamps import stamp


def main(
    figures: Annotated[tuple[str, ...], tyro.conf.arg(name="measure")] = (),
    again: bool = False,
    write: bool = False,
    data: pathlib.Path = pathlib.Path("."),
    runs: pathlib.Path = pathlib.Path("runs/figures"),
) -> int:
    """Shows when figures were measured, or measures some of them.

    Without arguments it lists all figures with the pages that show them, their
    commands, and the day, the commit and the machine of their measurement.

    Args:
        figures: Names of figures to measure. A measurement that was stopped
            goes on where it was.
        again: With --measure, measure from the beginning.
        write: Write the tables of all figures into the pages, without
            measuring.
        data: Folder with the texts that the commands read.
        runs: Folder for the commands' working directories.

    Returns:
        The exit code.
    """
    names = [figure.name for figure in FIGURES]
    unknown = [name for name in figures if name not in names]
    if unknown:
        return _refuse(
            f"--measure takes {', '.join(names)}, received "
            f"{', '.join(unknown)}."
        )
    try:
        commit = current_commit() if figures else ""
    except RuntimeError as error:
        return _refuse(error)
    failed = False
    for figure in FIGURES:
        if figure.name not in figures:
            continue
        try:
            measure(figure, commit, data, runs, again)
        except RuntimeError as error:
            print(f"error: {error}", file=sys.stderr)
            failed = True
            continue
        stamp(figure, commit)
        write_tables(figure)
    if write:
        for figure in FIGURES:
            write_tables(figure)
    if write or figures:
        write_table(OVERVIEW, OVERVIEW.make(MEASURED))
    print(overview())
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


def overview():
    """A table of all figures, as Markdown."""
    stamps = read_stamps()
    rows = []
    for figure in FIGURES:
        found = stamps.get(figure.name)
        commands = [
            f"`{command.format(out='OUT')}`" for command in figure.commands
        ]
        rows.append(
            [
                figure.name,
                ", ".join(figure.all_pages),
                "<br>".join(commands),
                *(
                    (found.date, found.commit, found.machine)
                    if found
                    else "---"
                ),
            ]
        )
    header = ["figures", "pages", "commands", "measured", "commit", "machine"]
    return tabulate(rows, header, tablefmt="github", disable_numparse=True)


OVERVIEW = Table(
    "docs/measured/README.md",
    "overview",
    lambda _: select(find_table(overview(), None)),
)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
