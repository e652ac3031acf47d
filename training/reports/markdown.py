"""Tables as Markdown."""

from collections.abc import Iterable
from collections.abc import Sequence

from tabulate import tabulate


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table: names on the left, figures to the right.

    Args:
        header: The names of the columns.
        rows: Their cells, already as text.
    """
    return tabulate(
        rows,
        header,
        tablefmt="pipe",
        colalign=("left", *("right" for _ in header[1:])),
        disable_numparse=True,
    )
