"""The figures of the comparisons of papers."""

from benchmarks.published.figure import Figure
from benchmarks.published.figure import Table
from benchmarks.published.figure import report_table

_PAPER = "docs/results/paper.md"
#: The texts that models of text are trained and measured on.
WIKI = ("wiki.train.tokens", "wiki.valid.tokens")

_TABLE_2 = "Perplexity and use of the memories (table 2)"
_PERPLEXITY = {
    "model": "model",
    "steps": "steps",
    "before": "memory just added",
    "perplexity": "perplexity",
    "other text": "of the book",
    "the paper's: perplexity": "the paper's",
}
_USE = {
    "model": "model",
    "top-1 used %": "top-1 used %",
    "KL_u": "KL_u",
    "KL_w": "KL_w",
    "stale %": "stale %",
    "top-1 used % (paper)": "top-1 used % (paper)",
    "KL_u (paper)": "KL_u (paper)",
    "KL_w (paper)": "KL_w (paper)",
}
#: Models without memory.
_PLAIN = ("a BERT", "b BERT, trained twice as long")
_DEPTHS = {
    "model": "model",
    "perplexity": "perplexity",
    "bits/byte": "bits/byte",
    "top-1 used %": "top-1 used %",
    "KL_u": "KL_u",
    "KL_w": "KL_w",
}


def _compared(name, heading, columns=None, without=()):
    file = "comparison/report.md"
    return Table(_PAPER, name, report_table(file, heading, columns, without))


COMPARISONS = (
    Figure(
        "paper",
        (
            "python training/reproduce.py --out {out}/comparison "
            "--text wiki.train.tokens --validation wiki.valid.tokens "
            "--out-of-domain books.txt --glue GLUE --seeds 3 "
            "--repeat a b c d f",
            *(
                "python training/analyze_memory.py "
                f"--model {{out}}/comparison/seed-0/{key} "
                f"--text wiki.valid.tokens --out {{out}}/analysis-{key}"
                for key in "cf"
            ),
        ),
        (
            _compared("paper-perplexity", _TABLE_2, _PERPLEXITY),
            _compared("paper-use", _TABLE_2, _USE, without=_PLAIN),
            _compared("paper-orders", "Orders"),
            _compared("paper-tasks", "Fine-tuning (tables 4 and 5)"),
        ),
        needs=(*WIKI, "books.txt", "GLUE"),
        keeps=("comparison/report.md", "comparison/report.json"),
        pictures=(
            ("comparison/curves.png", "docs/curves.png"),
            ("comparison/staleness-c.png", "docs/staleness-pkm.png"),
            ("comparison/staleness-f.png", "docs/staleness-init-resm.png"),
            ("analysis-c/grids.png", "docs/grids-pkm.png"),
            ("analysis-f/grids.png", "docs/grids-init-resm.png"),
        ),
    ),
    Figure(
        "depths",
        (
            "python training/reproduce.py --out {out} --paper lample "
            "--text wiki.train.tokens --validation wiki.valid.tokens",
        ),
        (
            Table(
                _PAPER, "depths", report_table("report.md", _TABLE_2, _DEPTHS)
            ),
            Table(_PAPER, "depths-orders", report_table("report.md", "Orders")),
        ),
        needs=WIKI,
        keeps=("report.md", "report.json", "curves.png"),
    ),
)
