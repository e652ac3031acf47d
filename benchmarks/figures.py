#!/usr/bin/env python
"""Measures the figures of the README and the documentation, and writes them.

python benchmarks/figures.py
python benchmarks/figures.py --measure start --data texts
"""

import pathlib
import shlex
import shutil
import subprocess
import sys
from typing import Annotated

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tyro
from tabulate import tabulate

from benchmarks.published.figures import FIGURES
from benchmarks.published.figures import MEASURED
from benchmarks.published.figures import ROOT
from benchmarks.published.figures import Figure
from benchmarks.published.figures import Table
from benchmarks.published.stamps import current_commit
from benchmarks.published.stamps import read_stamps
from benchmarks.published.stamps import stamp
from benchmarks.published.tables import markdown

# The page with the table of all figures.
OVERVIEW = "docs/measured/README.md"


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
    failed = False
    try:
        if unknown:
            raise RuntimeError(
                f"--measure takes {', '.join(names)}, received "
                f"{', '.join(unknown)}."
            )
        commit = current_commit() if figures else ""
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for figure in FIGURES:
        try:
            if figure.name in figures:
                measure(figure, commit, data, runs, again)
                stamp(figure.name, commit)
            elif not write:
                continue
        except RuntimeError as error:
            print(f"error: {error}", file=sys.stderr)
            failed = True
        else:
            for table in figure.tables:
                write_table(table)
    if write or figures:
        put("overview", OVERVIEW, markdown(*overview()))
    columns, rows = overview()
    print(tabulate(rows, columns, tablefmt="github", disable_numparse=True))
    return 1 if failed else 0


def measure(
    figure: Figure,
    commit: str,
    data: pathlib.Path,
    runs: pathlib.Path,
    again: bool,
) -> None:
    """Runs the commands that have not ended yet, and copies what they found.

    A measurement that was stopped goes on. Once the code has changed, it starts
    again.
    """
    missing = [name for name in figure.needs if not (data / name).exists()]
    if missing:
        raise RuntimeError(
            f"{figure.name} needs {', '.join(missing)} in {data.resolve()}: "
            "name their folder with --data."
        )
    out = runs.resolve() / figure.name
    # Beside it: commands want a directory that is empty or their own.
    mark = out.with_suffix(".commit")
    begun = mark.exists() and mark.read_text(encoding="utf-8") == commit
    if again or not begun:
        shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    mark.write_text(commit, encoding="utf-8")
    for number, command in enumerate(figure.commands, start=1):
        # What it printed, and the mark that it has ended.
        output = out / f"output-{number}.txt"
        if not output.exists():
            output.write_text(_run(command, out, data), encoding="utf-8")
    kept = MEASURED / figure.name
    shutil.rmtree(kept, ignore_errors=True)
    for path in sorted(
        path for pattern in figure.keeps for path in out.glob(pattern)
    ):
        copy = kept / path.relative_to(out)
        copy.parent.mkdir(parents=True, exist_ok=True)
        # No paths of the machine on which it was measured.
        found = path.read_bytes()
        found = found.replace(
            str(out).encode(), f"docs/measured/{figure.name}".encode()
        )
        copy.write_bytes(found.replace(f"{ROOT}/".encode(), b""))
    for name, picture in figure.pictures:
        shutil.copyfile(out / name, ROOT / picture)


def _run(command, out, data):
    """Runs a command, and returns what it printed on standard output."""
    command = command.format(out=out)
    print(f"$ {command}", flush=True)
    _, script, *args = shlex.split(command)
    done = subprocess.run(
        [sys.executable, str(ROOT / script), *args],
        cwd=data,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(
            f"{command} ended with exit code {done.returncode}. The end of its "
            f"output:\n{done.stdout[-2000:]}"
        )
    return done.stdout


def write_table(table: Table) -> None:
    """Writes a table into its pages, if it can be made."""
    try:
        text = table.markdown()
    except FileNotFoundError as error:
        print(f"{table.name} stays as it is: {error}")
        return
    for page in table.pages:
        put(table.name, page, text)


def put(name: str, page: str, text: str) -> None:
    """Writes a table between its markers on a page."""
    path = ROOT / page
    start, end = f"<!-- figures: {name} -->\n", "<!-- end -->"
    before, *after = path.read_text(encoding="utf-8").split(start)
    if len(after) != 1 or end not in after[0]:
        raise ValueError(
            f"{page} must have {start.strip()} with an {end} once, it has "
            f"them {len(after)} times."
        )
    old, rest = after[0].split(end, 1)
    if old != f"{text}\n":
        path.write_text(f"{before}{start}{text}\n{end}{rest}", encoding="utf-8")
        print(f"{page}: wrote {name}")


def overview() -> tuple[list[str], list[list[str]]]:
    """Returns the columns and rows of the table of all figures."""
    stamps = read_stamps()
    rows = []
    for figure in FIGURES:
        found = stamps.get(figure.name, {})
        commands = [
            f"`{command.format(out='OUT')}`" for command in figure.commands
        ]
        rows.append(
            [
                figure.name,
                ", ".join(figure.pages),
                "<br>".join(commands),
                *(found.get(key, "-") for key in ("date", "commit", "machine")),
            ]
        )
    columns = ["figures", "pages", "commands", "measured", "commit", "machine"]
    return columns, rows


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
