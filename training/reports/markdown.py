"""Tables as Markdown."""

import sys
from collections.abc import Iterable
from collections.abc import Sequence

from rich.console import Console
from rich.markdown import Markdown
from tabulate import tabulate


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table; the first column is left-aligned."""
    return tabulate(
        rows,
        header,
        tablefmt="pipe",
        colalign=("left", *("right" for _ in header[1:])),
        disable_numparse=True,
    )


def print_markdown(text: str) -> None:
    """Prints Markdown: drawn in a terminal, and as it is in files and pipes."""
    if sys.stdout.isatty():
        Console().print(Markdown(text))
    else:
        print(text)
