"""Figures of the documentation: their places, stamps and measurement."""

import re
import subprocess
import sys

import pytest

from benchmarks import figures
from benchmarks.published import figure as figure_module
from benchmarks.published import measure as measure_module
from benchmarks.published import pages
from benchmarks.published import stamps
from benchmarks.published.figure import Figure
from benchmarks.published.figure import Table
from benchmarks.published.figure import find_table
from benchmarks.published.figure import printed_tables
from benchmarks.published.figure import report_table
from benchmarks.published.measure import measure
from benchmarks.published.registry import FIGURES
from tests.docs.pages import ROOT
from tests.docs.pages import commands
from tests.docs.pages import pages as all_pages

REPORT = """# Report

## Models

| model | recall % | ms |
|:------|---------:|---:|
| plain |     18.9 | 58 |
| ResM  |    100.0 |  9 |

Words.

| other |
|------:|
| 1     |
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a script and a page."""
    for module in (figure_module, measure_module, pages, stamps):
        if hasattr(module, "ROOT"):
            monkeypatch.setattr(module, "ROOT", tmp_path)
    measured = tmp_path / "docs" / "measured"
    monkeypatch.setattr(figure_module, "MEASURED", measured)
    monkeypatch.setattr(stamps, "_PATH", measured / "stamps.json")
    monkeypatch.setattr(stamps, "_CODE", ("run.py",))
    (tmp_path / "page.md").write_text(
        "before\n<!-- figures: models -->\nold\n<!-- end -->\nafter\n"
    )
    (tmp_path / "run.py").write_text(
        "import pathlib, sys\n"
        "out, number = pathlib.Path(sys.argv[1]), sys.argv[2]\n"
        "text = pathlib.Path('text').read_text()\n"
        "(out / 'report.md').write_text(text.replace('  9', number))\n"
        "(out / 'plot.png').write_text(number)\n"
        "with open(out / 'calls', 'a') as file: file.write(number)\n"
        "print('| printed |\\n|---:|\\n| 1 |')\n"
        "print(pathlib.Path(__file__).resolve(), out)\n"
    )
    (tmp_path / "text").write_text(REPORT)
    measured.mkdir(parents=True)
    (measured / "README.md").write_text(
        "<!-- figures: overview -->\n<!-- end -->\n"
    )
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def git(directory, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True)


def commit(directory):
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", "a change")


def a_figure(command="python run.py {out} 7"):
    return Figure(
        "models",
        (command,),
        (Table("page.md", "models", report_table("report.md", "Models")),),
        needs=("text",),
        pictures=(("plot.png", "picture.png"),),
    )


def test_every_table_has_its_place():
    expected = {
        (table.page, table.name) for each in FIGURES for table in each.tables
    }
    found = [
        (page, name) for page in all_pages() for name in pages.names_on(page)
    ]
    expected.add((figures.OVERVIEW.page, figures.OVERVIEW.name))
    assert len(found) == len(set(found))
    assert set(found) == expected
    for page in all_pages():
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in text.split("\n<!-- figures: ")[1:]:
            assert "<!-- end -->" in block


def test_every_figure_is_on_pages_that_exist():
    assert len({each.name for each in FIGURES}) == len(FIGURES)
    for each in FIGURES:
        for page in each.all_pages:
            assert (ROOT / page).is_file()
    assert {*stamps.read_stamps()} <= {each.name for each in FIGURES}


def test_every_command_stands_on_its_page():
    """A reader can repeat what was measured."""
    for each in FIGURES:
        shown = {
            (script, _flags(arguments))
            for page in each.all_pages
            for script, arguments in commands(page)
        }
        for command in each.commands:
            _, script, *arguments = command.split()
            assert (script, _flags(arguments)) in shown, (each.name, command)


def _flags(arguments):
    """Arguments in any order, without directories to write."""
    text = " ".join(arguments)
    text = re.sub(r"--(?:out|output|run-dir|model) \S+", "", text)
    return tuple(sorted(text.split()))


def test_tables_are_found_and_cut(tmp_path):
    (tmp_path / "report.md").write_text(REPORT)
    whole = report_table("report.md", "Models")(tmp_path)
    assert whole.splitlines() == [
        "| model | recall % | ms |",
        "| :--- | ---: | ---: |",
        "| plain | 18.9 | 58 |",
        "| ResM | 100.0 | 9 |",
    ]
    columns = {"model": "model", "recall %": "known %"}
    cut = report_table("report.md", "Models", columns, ("plain",))(tmp_path)
    assert cut.splitlines() == [
        "| model | known % |",
        "| :--- | ---: |",
        "| ResM | 100.0 |",
    ]
    both = printed_tables("report.md")(tmp_path)
    assert both == f"{whole}\n\n| other |\n| ---: |\n| 1 |"
    with pytest.raises(ValueError, match="no heading 'Speed'"):
        find_table(REPORT, "Speed")
    with pytest.raises(ValueError, match="no table below 'Report'"):
        find_table(REPORT, "Report")


def test_figures_are_measured_once_and_written(repository, monkeypatch, capsys):
    each = a_figure()
    monkeypatch.setattr(figures, "FIGURES", (each,))
    monkeypatch.setattr(stamps, "FIGURES", (each,))
    places = {"data": repository, "runs": repository / "runs"}
    assert figures.main(**places) == 0
    assert stamps.origin("models") == "Not measured yet."
    assert stamps.origin("others") is None
    assert figures.main(("models",), **places) == 0
    (stamp,) = stamps.read_stamps().values()
    assert stamp.commit == stamps.current_commit()
    printed = capsys.readouterr().out
    for part in vars(stamp).values():
        assert f"| {part} " in printed
    assert stamps.origin("models") == (
        f"Measured on {stamp.date} with commit {stamp.commit} "
        f"({stamp.machine})."
    )
    page = (repository / "page.md").read_text()
    assert page.startswith("before\n<!-- figures: models -->\n| model |")
    assert "| ResM | 100.0 | 7 |\n<!-- end -->\nafter\n" in page
    kept = sorted(path.name for path in each.kept.iterdir())
    assert kept == ["output-1.md", "report.md"]
    printed = (each.kept / "output-1.md").read_text()
    assert printed.endswith("run.py docs/measured/models\n")
    assert str(repository) not in printed
    table = (each.kept.parent / "README.md").read_text()
    assert "| `python run.py OUT 7` |" in table
    assert (repository / "picture.png").read_bytes() == b"7"
    # Nothing is measured twice, unless it is asked for or the code changed.
    calls = repository / "runs" / "models" / "calls"
    commit(repository)
    figures.main(("models",), **places)
    assert calls.read_text() == "7"
    assert stamps.read_stamps()["models"].commit == stamp.commit
    figures.main(("models",), again=True, **places)
    assert calls.read_text() == "7"
    calls.write_text("old")
    with open(repository / "run.py", "a") as file:
        file.write("print('more')\n")
    capsys.readouterr()
    assert figures.main(("models",), **places) == 2
    assert "Commit these files first:\nM run.py" in capsys.readouterr().err
    commit(repository)
    figures.main(("models",), **places)
    assert calls.read_text() == "7"
    assert stamps.read_stamps()["models"].commit != stamp.commit


def test_what_is_missing_or_fails_is_named(repository, monkeypatch, capsys):
    each = a_figure()
    places = {"data": repository, "runs": repository / "runs"}
    with pytest.raises(RuntimeError, match="models needs text in .*--data"):
        measure(each, "abc", repository / "docs", repository / "runs", False)
    failing = a_figure("python missing.py {out} 7")
    monkeypatch.setattr(figures, "FIGURES", (failing,))
    monkeypatch.setattr(stamps, "FIGURES", (failing,))
    assert figures.main(("models",), **places) == 1
    assert "ended with exit code 2" in capsys.readouterr().err
    assert stamps.read_stamps() == {}
    assert figures.main(("other",)) == 2
    assert "takes models, received other" in capsys.readouterr().err
    (repository / "page.md").write_text("no markers\n")
    with pytest.raises(ValueError, match="it has them 0 times"):
        pages.write_table(each.tables[0], "text")


def test_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["figures.py", "--help"])
    with pytest.raises(SystemExit):
        figures.tyro.cli(figures.main)
    assert "--measure" in capsys.readouterr().out
