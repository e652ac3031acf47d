"""Prepares docstrings for the site: examples become blocks of code."""

import re
from typing import Any

import griffe

# From the first prompt to the next empty line, results included.
_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
# A public name outside of code blocks; a link goes to the class or function.
_NAME = re.compile(r"(?<!`)`(?P<public>keras_pkm\.\w+\.\w+)(?P<rest>[.\w]*)`")
_CALL_ARGUMENTS = re.compile(
    r"^Call arguments:\n(?P<body>(?: {4}.*\n|\s*\n)+)", re.MULTILINE
)


def prepare(text: str) -> str:
    """Returns a docstring as Markdown shows it.

    Sections that griffe does not know, such as "Call arguments", become
    lists, public names become links, and examples with prompts become blocks
    of code.
    """
    text = _CALL_ARGUMENTS.sub(_list_arguments, text + "\n")
    text = re.sub(
        r"^(Example|References|Reference):$", r"**\1**", text, flags=re.M
    )
    text = _NAME.sub(r"[`\g<public>\g<rest>`][\g<public>]", text)
    return _EXAMPLE.sub(r"```pycon\n\g<0>\n```", text).rstrip()


def _list_arguments(match: re.Match[str]) -> str:
    lines = ["**Call arguments**", ""]
    for line in match["body"].rstrip().splitlines():
        text = line[4:]
        if text and not text.startswith(" "):
            names, _, meaning = text.partition(": ")
            text = f"- **`{names}`**: {meaning}"
        lines.append(text)
    return "\n".join([*lines, "", ""])


class DocstringExamples(griffe.Extension):
    """Prepares each docstring once it was read."""

    def on_instance(self, *, obj: Any, **kwargs: Any) -> None:
        """Replaces the text of the object's docstring."""
        if obj.docstring is not None and not obj.is_alias:
            obj.docstring.value = prepare(obj.docstring.value)
