"""README and the pages that it leads to, beside what they contain."""

import re

from tests.docs.pages import ROOT

README = ROOT / "README.md"


def test_the_map_names_all_rooms():
    text = (ROOT / "docs" / "contributing" / "architecture.md").read_text()
    for name in ("keras_pkm", "training", "export", "benchmarks"):
        for path in (ROOT / name).glob("*/__init__.py"):
            room = path.parent.relative_to(ROOT).as_posix()
            assert f"`{room}/`" in text, room


def test_pictures_and_pages_are_there():
    text = README.read_text()
    for link in re.findall(r"\]\((.*?)\)", text):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        assert (ROOT / path).exists(), link
        if anchor:
            page = (ROOT / path).read_text()
            assert anchor in map(slug, re.findall(r"^#+ (.*)$", page, re.M))


def slug(heading):
    """The anchor of a heading, as GitHub and mkdocs make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_the_commands_that_ci_runs_are_marked():
    text = README.read_text()
    for name in ("train", "test"):
        block = rf"<!-- {name} -->\n```shell\npip install .*?```\n<!-- end -->"
        assert re.search(block, text, re.DOTALL), name
