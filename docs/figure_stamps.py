"""Says on a page when each table was measured, with which commit, and where."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from benchmarks.published.stamps import origin

_MARKER = re.compile(r"<!-- figures: (\S+) -->")


def on_page_content(html, **_):
    """Puts the sentences where the markers of tables are."""

    def say(match):
        text = origin(match[1])
        return "" if text is None else f"<p><small>{text}</small></p>"

    return _MARKER.sub(say, html)
