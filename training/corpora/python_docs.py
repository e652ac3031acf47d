"""The corpus that comes with every Python: its own documentation.

It has about 370 thousand words of English: the language reference that `help()`
shows and the docstrings of the standard library. It needs no download, and
differs a little between versions of Python.
"""

import ast
import functools
import os
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from pydoc_data import topics

# Tests, and packages that do not belong to the standard library.
_SKIPPED_FOLDERS = {
    "test",
    "tests",
    "idle_test",
    "site-packages",
    "dist-packages",
    "__pycache__",
}


@functools.cache
def python_documents() -> tuple[str, ...]:
    """Returns the documents, in a fixed order, without duplicates.

    A document is one topic of `help()`, or all docstrings of one module. The
    result is cached: it has 2.5 MB, and parsing the standard library takes
    seconds.
    """
    texts = [topics.topics[name] for name in sorted(topics.topics)]
    stdlib = Path(sysconfig.get_path("stdlib"))
    texts += map(_module_docstrings, _source_files(stdlib))
    documents = map(_join_wrapped_lines, texts)
    return tuple(dict.fromkeys(filter(None, documents)))


def _source_files(folder: Path) -> Iterator[Path]:
    """Yields the Python files under `folder`, sorted."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
        for file in sorted(files):
            if file.endswith(".py"):
                yield Path(parent, file)


def _module_docstrings(path: Path) -> str:
    """Returns a file's docstrings, or "" if it cannot be parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about other people's escapes
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            return ""
    documented = (
        ast.Module,
        ast.ClassDef,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
    )
    docstrings = (
        ast.get_docstring(node)
        for node in ast.walk(tree)
        if isinstance(node, documented)
    )
    return "\n\n".join(filter(None, docstrings))


def _join_wrapped_lines(text: str) -> str:
    """Puts each paragraph on one line, and drops the rules under headings."""
    text = re.sub(r"^[^\w\n]+$", "", text, flags=re.MULTILINE)
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n{2,}", text))
    return "\n".join(filter(None, paragraphs))
