"""Pages of reports: all parts, and text that looks like HTML."""

from matplotlib.figure import Figure

from training.measuring.slot_tokens import SlotReaders
from training.measuring.slot_tokens import TypicalToken
from training.reports import html_page as page


def test_parts_and_text_that_looks_like_html():
    tokens = [TypicalToken("<s>", 0.123, 1234.5), TypicalToken("b", 0.1, 2.0)]
    readers = [SlotReaders(1234, 5678, tokens, [("a & b", "<s>", "c")])]
    made = page.make_page(
        "A & B",
        {
            "<One>": [
                page.note("a < b"),
                page.table(["x", "y"], [["<1>", 2], ["3", "4"]], paper=1),
            ],
            "Two": [
                page.readers_table(readers),
                page.picture(Figure(), "A <picture>"),
                page.commands(["a > b", "c"]),
            ],
        },
    )
    assert made.startswith("<!doctype html>\n")
    for part in (
        "<title>A &amp; B</title>",
        "<h2>&lt;One&gt;</h2>",
        '<p class="note">a &lt; b</p>',
        "<thead><tr><th>x</th><th>y</th></tr></thead>",
        "<tr><td>&lt;1&gt;</td><td>2</td></tr>",
        '<tr class="paper"><td>3</td><td>4</td></tr>',
        "<tr><td>1,234</td><td>5,678</td>",
        '<td class="text">&lt;s&gt; 12.3% (×1.23e+03)<br>b 10.0% (×2)</td>',
        '<td class="text">a &amp; b <mark>&lt;s&gt;</mark> c</td>',
        '<img alt="A &lt;picture&gt;" src="data:image/svg+xml;base64,',
        "<figcaption>A &lt;picture&gt;</figcaption>",
        '<pre class="wide">a &gt; b\nc</pre>',
    ):
        assert part in made, part
