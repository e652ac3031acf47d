"""The report on a model's memories as one HTML page that opens offline."""

import base64
import html
import io

from matplotlib.figure import Figure

from training.measuring.slot_tokens import SlotReaders

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.2; }
h2 { font-size: 1.15rem; margin-top: 2.5rem; }
img { max-width: 100%; height: auto; display: block; margin: 1rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.875rem; }
th, td { padding: 0.25rem 0.75rem; text-align: right; white-space: nowrap;
         border-bottom: 1px solid #ddd; vertical-align: top; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.text { text-align: left; white-space: normal; min-width: 14rem; }
tr.paper { color: #666; font-style: italic; }
mark { background: #fbe3b5; }
p.note, figcaption { color: #555; font-size: 0.875rem; }
figure { margin: 0; }
"""


def make_page(title: str, sections: list[tuple[str, list[str]]]) -> str:
    """Returns a page."""
    body = "\n".join(
        f"<section>\n<h2>{html.escape(heading)}</h2>\n"
        + "\n".join(parts)
        + "\n</section>"
        for heading, parts in sections
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, '
        'initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f"</head>\n<body>\n<h1>{html.escape(title)}</h1>\n{body}\n"
        "</body>\n</html>\n"
    )


def note(text: str) -> str:
    """Returns a paragraph of explanation."""
    return f'<p class="note">{html.escape(text)}</p>'


def commands(lines: list[str]) -> str:
    """Returns a listing of commands, one on each line."""
    text = html.escape("\n".join(lines))
    return f'<pre class="wide">{text}</pre>'


def picture(figure: Figure, caption: str) -> str:
    """Returns a matplotlib figure, drawn into the page."""
    file = io.BytesIO()
    # No date, so that equal numbers give equal pages.
    figure.savefig(file, format="svg", metadata={"Date": None}, dpi=150)
    data = base64.b64encode(file.getvalue()).decode()
    caption = html.escape(caption)
    return (
        f'<figure>\n<img alt="{caption}" '
        f'src="data:image/svg+xml;base64,{data}">\n'
        f"<figcaption>{caption}</figcaption>\n</figure>"
    )


def table(header: list[str], rows: list[list[str]], paper: int = 0) -> str:
    """Returns a table of plain text."""
    return _table(
        header,
        [[html.escape(str(cell)) for cell in row] for row in rows],
        paper,
    )


def readers_table(readers: list[SlotReaders]) -> str:
    """Returns the table of slots and the tokens that read them."""
    rows = []
    for reader in readers:
        tokens = "<br>".join(
            f"{html.escape(token.token)} {token.share:.1%} (×{token.lift:,.3g})"
            for token in reader.tokens
        )
        contexts = "<br>".join(
            f"{html.escape(before)} <mark>{html.escape(token)}</mark> "
            f"{html.escape(after)}"
            for before, token, after in reader.contexts
        )
        rows.append([f"{reader.slot:,}", f"{reader.reads:,}", tokens, contexts])
    return _table(
        ["slot", "top-1 reads", "typical tokens", "in context"],
        rows,
        text=(2, 3),
    )


def _table(
    header: list[str],
    rows: list[list[str]],
    paper: int = 0,
    text: tuple[int, ...] = (),
) -> str:
    lines = ['<div class="wide"><table>']
    cells = _cells("th", [html.escape(cell) for cell in header], text)
    lines.append(f"<thead><tr>{cells}</tr></thead><tbody>")
    for number, row in enumerate(rows):
        kind = ' class="paper"' if number >= len(rows) - paper else ""
        lines.append(f"<tr{kind}>{_cells('td', row, text)}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _cells(tag: str, row: list[str], text: tuple[int, ...]) -> str:
    return "".join(
        f'<{tag} class="text">{cell}</{tag}>'
        if column in text
        else f"<{tag}>{cell}</{tag}>"
        for column, cell in enumerate(row)
    )
