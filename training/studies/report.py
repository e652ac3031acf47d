"""The report on a comparison, as Markdown and as one HTML page."""

import dataclasses
import pathlib
import statistics
from collections.abc import Iterable

from matplotlib.figure import Figure

from keras_pkm.files.whole_files import replacing_file
from keras_pkm.files.whole_files import write_whole
from training.reports import html_page as page
from training.reports.markdown import markdown_table


@dataclasses.dataclass(frozen=True)
class Table:
    """Text in cells."""

    title: str
    explanation: str
    header: list[str]
    rows: list[list[str]]


@dataclasses.dataclass(frozen=True)
class Report:
    """What a comparison has found, for readers."""

    title: str
    notes: list[str]
    tables: list[Table]
    # Figures with their captions, by the names of their files.
    plots: dict[str, tuple[Figure, str]]


def write_report(
    root: pathlib.Path, report: Report, commands: list[str]
) -> None:
    """Writes `report.md`, `report.html` and the plots."""
    for name, (figure, _) in report.plots.items():
        for kind in ("png", "svg"):
            with replacing_file(root / f"{name}.{kind}") as path:
                figure.savefig(path, format=kind, dpi=150)
    write_whole(root / "report.md", _as_markdown(report, commands))
    sections = {
        "What was done": [page.note(text) for text in report.notes],
        **{
            table.title: [
                *map(page.note, filter(None, [table.explanation])),
                page.table(table.header, table.rows),
            ]
            for table in report.tables
        },
        "Figures": [page.picture(*plot) for plot in report.plots.values()],
        "Commands": [page.commands(commands)],
    }
    write_whole(root / "report.html", page.make_page(report.title, sections))


def _as_markdown(report: Report, commands: list[str]) -> str:
    parts = [f"# {report.title}", *report.notes]
    for table in report.tables:
        rows = markdown_table(table.header, table.rows)
        parts += [f"## {table.title}", table.explanation, rows]
    parts += ["## Figures"]
    parts += [
        f"![{caption}]({name}.png)"
        for name, (_, caption) in report.plots.items()
    ]
    parts += ["## Commands", "\n".join(["```shell", *commands, "```"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def over_seeds(values: Iterable[float], style: str = ".1f") -> str:
    """Returns the median, with the range if there are several values."""
    values = list(values)
    middle = format(statistics.median(values), style)
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):{style}} to {max(values):{style}})"
