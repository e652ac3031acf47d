"""Writes tables into pages, between markers."""

import re

from benchmarks.published.figure import ROOT
from benchmarks.published.figure import Table


def write_table(table: Table, text: str) -> bool:
    """Writes a table into its page, and returns whether that changed it."""
    path = ROOT / table.page
    page = path.read_text(encoding="utf-8")
    found = list(_markers(table.name).finditer(page))
    if len(found) != 1:
        raise ValueError(
            f"{table.page} must have <!-- figures: {table.name} --> with an "
            f"<!-- end --> once, it has them {len(found)} times."
        )
    (match,) = found
    changed = f"{page[: match.start(1)]}{text}\n{page[match.end(1) :]}"
    if changed == page:
        return False
    path.write_text(changed, encoding="utf-8")
    return True


def names_on(page: str) -> list[str]:
    """Returns the names between the markers of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^<!-- figures: (\S+) -->$", text, re.MULTILINE)


def _markers(name):
    return re.compile(
        rf"<!-- figures: {re.escape(name)} -->\n(.*?)<!-- end -->", re.DOTALL
    )
