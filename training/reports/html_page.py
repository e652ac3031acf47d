"""Reports as HTML pages that open offline; `page.html` is their template."""

import base64
import io
import pathlib
from typing import Any

import jinja2
from matplotlib.figure import Figure

_TEMPLATE = jinja2.Environment(
    loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    keep_trailing_newline=True,
).get_template("page.html")

# The parts of a page, each as a function that returns it.
_PARTS: Any = _TEMPLATE.make_module({"sections": {}})
note = _PARTS.note
commands = _PARTS.commands
table = _PARTS.table
readers_table = _PARTS.readers_table


def picture(figure: Figure, caption: str) -> str:
    """Returns a matplotlib figure, drawn into the page."""
    file = io.BytesIO()
    # No date, so that equal numbers give equal pages.
    figure.savefig(file, format="svg", metadata={"Date": None}, dpi=150)
    return _PARTS.drawn(base64.b64encode(file.getvalue()).decode(), caption)


def make_page(title: str, sections: dict[str, list[str]]) -> str:
    """Returns a page; its sections have the parts that are named above."""
    return _TEMPLATE.render(title=title, sections=sections)
