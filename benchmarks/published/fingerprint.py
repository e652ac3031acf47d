"""A fingerprint of the code that a figure measures."""

import ast
import functools
import hashlib
import pathlib
from collections.abc import Iterable

_ROOT = pathlib.Path(__file__).parents[2]
_DIGITS = 12
# What is called with a message, whether it is raised or returned.
_MESSAGES = ("Error", "_LOGGER.warning", "warnings.warn")


def fingerprint(modules: Iterable[str], unused: Iterable[str] = ()) -> str:
    """Returns a hash of modules, and of all of the project that they import.

    Comments, docstrings, formatting, and what errors and warnings say do not
    change it.

    Args:
        modules: Dotted names, such as `"training.knowledge.learn"`.
        unused: Packages to leave out, which the modules import but do not use.

    Raises:
        ValueError: the project has no such module.
    """
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        left_out = any(f"{name}.".startswith(f"{each}.") for each in unused)
        if name not in found and not left_out:
            found.add(name)
            waiting += _imports(name)
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(f"{name}\n{_code(name)}\n".encode())
    return digest.hexdigest()[:_DIGITS]


@functools.cache
def _code(name):
    """The code of a module, without comments, docstrings and messages."""
    tree = _tree(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        if isinstance(node, ast.Call) and _has_message(node):
            node.args, node.keywords = [], []
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        # Strings that stand alone: docstrings, and those of constants.
        kept = [each for each in body if not _is_string(each)]
        node.body = kept or [ast.Pass()]
    return ast.unparse(tree)


def _has_message(call):
    return ast.unparse(call.func).endswith(_MESSAGES)


def _is_string(node):
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@functools.cache
def _imports(name):
    """The modules of the project that a module imports."""
    names = set()
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                names.add(whole if _path(whole) else node.module)
    return {each for each in names if _path(each)}


def _tree(name):
    path = _path(name)
    if path is None:
        raise ValueError(f"There is no module {name} in {_ROOT}.")
    return ast.parse(path.read_text(encoding="utf-8"))


def _path(name):
    """The file of a module of the project, or None."""
    path = _ROOT.joinpath(*name.split("."))
    for each in (path.with_suffix(".py"), path / "__init__.py"):
        if each.is_file():
            return each
    return None
