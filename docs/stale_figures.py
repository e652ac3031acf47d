"""Warns on a page of tables whose code has changed since they were measured."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from benchmarks.published.stamps import warning

_MARKER = re.compile(r"<!-- figures: (\S+) -->")


def on_page_content(html, **_):
    """Puts warnings where the markers of stale tables are."""

    def warn(match):
        text = warning(match[1])
        if text is None:
            return ""
        return f'<div class="admonition warning"><p>{text}</p></div>'

    return _MARKER.sub(warn, html)
