"""The pages of the documentation, with their blocks and commands."""

import pathlib
import re
import shlex
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.*?) -->\n)?"
    r"```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_SCRIPT = re.compile(r"python ((?:training|export|benchmarks)/\w+\.py)(.*)")
_IN_LINE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")


class Block(NamedTuple):
    """A block of code, and why it is not run, if it is not."""

    language: str
    text: str
    reason: str | None


def pages():
    """The pages with code, as paths from the repository's root."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found += [ROOT / "benchmarks" / "README.md"]
    found += sorted((ROOT / "docs").rglob("*.md"))
    return [
        path.relative_to(ROOT).as_posix()
        for path in found
        if "measured" not in path.parts or path.name == "README.md"
    ]


def blocks(page, language):
    """The blocks of a page in a language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [
        Block(match["language"], match["text"], match["reason"])
        for match in _BLOCK.finditer(text)
    ]
    return [block for block in found if block.language == language]


def commands(page):
    """The calls of our scripts on a page: `(script, arguments)`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [
        line
        for block in blocks(page, "shell")
        for line in block.text.replace("\\\n", " ").splitlines()
    ]
    prose = _BLOCK.sub("", text)
    for code in _IN_LINE.findall(prose):
        # Tables of figures leave out where the benchmarks are.
        short = re.match(r"(\w+\.py) -", code)
        if short and (ROOT / "benchmarks" / short[1]).is_file():
            code = f"python benchmarks/{code}"
        lines.append(code.replace("\n", " "))
    return [
        (script, shlex.split(rest.rstrip("'"), comments=True))
        for line in lines
        for script, rest in _SCRIPT.findall(line)
    ]
