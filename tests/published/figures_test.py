"""Figures of the documentation: their places, stamps and measurement."""

import json
import re
import subprocess

import pytest

from benchmarks import figures
from benchmarks.published import figures as listed
from benchmarks.published import stamps
from benchmarks.published.figures import FIGURES
from benchmarks.published.figures import TABLES
from benchmarks.published.figures import Figure
from benchmarks.published.figures import Table
from tests.docs.pages import ROOT
from tests.docs.pages import commands
from tests.docs.pages import pages as all_pages

REPORT = json.dumps(
    {
        "tables": {
            "Models": {
                "columns": ["model", "recall %", "ms", "ms"],
                "rows": [
                    ["plain", "18.9", "58", "-"],
                    ["ResM", "100.0", "9", "8"],
                ],
            }
        }
    }
)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a script and a page."""
    measured = tmp_path / "docs" / "measured"
    for module in (figures, listed, stamps):
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "MEASURED", measured)
    table = Table(
        "models",
        ["page.md"],
        ["models"],
        "stored",
        {"file": "models/report.json", "title": "Models"},
    )
    for module in (listed, stamps):
        monkeypatch.setattr(module, "TABLES", [table])
    monkeypatch.setattr(stamps, "_PATH", measured / "stamps.json")
    monkeypatch.setattr(stamps, "_CODE", ("run.py",))
    (tmp_path / "page.md").write_text(
        "before\n<!-- figures: models -->\nold\n<!-- end -->\nafter\n"
    )
    (tmp_path / "run.py").write_text(
        "import pathlib, sys\n"
        "out, number = pathlib.Path(sys.argv[1]), sys.argv[2]\n"
        "text = pathlib.Path('text').read_text()\n"
        "(out / 'report.json').write_text(text.replace('\"9', '\"' + number))\n"
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
        [command],
        needs=["text"],
        keeps=["*.json", "output-1.txt"],
        pictures=[["plot.png", "picture.png"]],
    )


def test_every_table_has_its_place():
    expected = {(page, table.name) for table in TABLES for page in table.pages}
    found = [
        (page, name)
        for page in all_pages()
        for name in re.findall(
            r"^<!-- figures: (\S+) -->$",
            (ROOT / page).read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    ]
    expected.add((figures.OVERVIEW, "overview"))
    assert len(found) == len(set(found))
    assert set(found) == expected
    for page in all_pages():
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in text.split("\n<!-- figures: ")[1:]:
            assert "<!-- end -->" in block


def test_every_figure_is_on_pages_that_exist():
    assert len({each.name for each in FIGURES}) == len(FIGURES)
    for each in FIGURES:
        assert each.tables
        for page in each.pages:
            assert (ROOT / page).is_file()
    for table in TABLES:
        assert {*table.figures} <= {each.name for each in FIGURES}
    assert {*stamps.read_stamps()} <= {each.name for each in FIGURES}


def test_every_command_stands_on_its_page():
    """A reader can repeat what was measured."""
    for each in FIGURES:
        shown = {
            (script, _flags(arguments))
            for page in each.pages
            for script, arguments in commands(page)
        }
        for command in each.commands:
            _, script, *arguments = command.split()
            assert (script, _flags(arguments)) in shown, (each.name, command)


def _flags(arguments):
    """Arguments in any order, without directories to write."""
    pairs = re.findall(r"(--\S+)((?: (?!--)\S+)*)", " ".join(arguments))
    return tuple(
        sorted(
            (flag, values)
            for flag, values in pairs
            if flag not in ("--out", "--output", "--run-dir", "--model")
        )
    )


def test_pages_show_what_is_stored():
    """No figure is on a page that has not been measured."""
    for table in TABLES:
        for page in table.pages:
            text = (ROOT / page).read_text(encoding="utf-8")
            block = (
                f"<!-- figures: {table.name} -->\n{table.markdown()}\n<!-- end"
            )
            assert block in text, (page, table.name)


def test_figures_are_measured_once_and_written(repository, monkeypatch, capsys):
    each = a_figure()
    monkeypatch.setattr(figures, "FIGURES", [each])
    places = {"data": repository, "runs": repository / "runs"}
    assert figures.main(**places) == 0
    assert stamps.origin("models") == "Not measured yet."
    assert stamps.origin("others") is None
    assert figures.main(("models",), **places) == 0
    (stamp,) = stamps.read_stamps().values()
    assert stamp["commit"] == stamps.current_commit()
    printed = capsys.readouterr().out
    for part in stamp.values():
        assert f"| {part} " in printed
    assert stamps.origin("models") == (
        "Measured on {date} with commit {commit} ({machine}).".format(**stamp)
    )
    page = (repository / "page.md").read_text()
    assert page.startswith("before\n<!-- figures: models -->\n| model |")
    assert "| ResM | 100.0 | 7 | 8 |\n<!-- end -->\nafter\n" in page
    kept = repository / "docs" / "measured" / "models"
    names = sorted(path.name for path in kept.iterdir())
    assert names == ["output-1.txt", "report.json"]
    printed = (kept / "output-1.txt").read_text()
    assert printed.endswith("run.py docs/measured/models\n")
    assert str(repository) not in printed
    table = (kept.parent / "README.md").read_text()
    assert "| `python run.py OUT 7` |" in table
    assert (repository / "picture.png").read_bytes() == b"7"
    # Nothing is measured twice, unless it is asked for or the code changed.
    calls = repository / "runs" / "models" / "calls"
    commit(repository)
    calls.write_text("old")
    figures.main(("models",), **places)
    assert calls.read_text() == "old"
    assert stamps.read_stamps()["models"]["commit"] == stamp["commit"]
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
    assert stamps.read_stamps()["models"]["commit"] != stamp["commit"]


def test_what_is_missing_or_fails_is_named(repository, monkeypatch, capsys):
    each = a_figure()
    places = {"data": repository, "runs": repository / "runs"}
    with pytest.raises(RuntimeError, match="models needs text in .*--data"):
        figures.measure(
            each, "abc", repository / "docs", repository / "runs", False
        )
    failing = a_figure("python missing.py {out} 7")
    monkeypatch.setattr(figures, "FIGURES", [failing])
    assert figures.main(("models",), **places) == 1
    assert "ended with exit code 2" in capsys.readouterr().err
    assert stamps.read_stamps() == {}
    assert figures.main(("other",)) == 2
    assert "takes models, received other" in capsys.readouterr().err
    (repository / "page.md").write_text("no markers\n")
    with pytest.raises(ValueError, match="it has them 0 times"):
        figures.put("models", "page.md", "text")
