import sys

from training.reports.markdown import markdown_table
from training.reports.markdown import print_markdown

TABLE = markdown_table(["model", "recall %"], [["ResM", "100.0"]])


def test_files_and_pipes_get_markdown(capsys):
    print_markdown(TABLE)
    assert capsys.readouterr().out == f"{TABLE}\n"


def test_terminals_get_a_drawn_table(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_markdown(f"# Report\n\n{TABLE}")
    printed = capsys.readouterr().out
    assert "|" not in printed and "#" not in printed
    assert "ResM" in printed
    assert "━" in printed or "─" in printed
