"""Public functions and methods say what they take and what they return."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = ("keras_pkm", "training", "export")
PATHS = [
    path.relative_to(ROOT).as_posix()
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def is_public(name):
    return not name.startswith("_") or name == "__init__"


def public_functions(body, prefix=""):
    """Yields names and definitions, those of methods behind their class's."""
    for node in body:
        if not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) or not is_public(node.name):
            continue
        if isinstance(node, ast.ClassDef):
            yield from public_functions(node.body, f"{node.name}.")
        else:
            yield f"{prefix}{node.name}", node


def missing_annotations(function, is_method):
    """The names of its parameters without annotation, and `return`."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args]
    is_static = any(
        isinstance(decorator, ast.Name) and decorator.id == "staticmethod"
        for decorator in function.decorator_list
    )
    if is_method and not is_static:
        parameters = parameters[1:]
    parameters += arguments.kwonlyargs
    parameters += filter(None, [arguments.vararg, arguments.kwarg])
    missing = [
        parameter.arg for parameter in parameters if not parameter.annotation
    ]
    if function.returns is None and function.name != "__init__":
        missing.append("return")
    return missing


@pytest.mark.parametrize("path", PATHS)
def test_public_functions_are_annotated(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    missing = {
        name: found
        for name, function in public_functions(tree.body)
        if (found := missing_annotations(function, is_method="." in name))
    }
    assert not missing


def test_a_missing_annotation_is_found():
    source = (
        "class A:\n"
        "    def __init__(self, a: int, *b, c=1, **d): ...\n"
        "    def e(self, f: int): ...\n"
        "    def g(self) -> int: ...\n"
        "    def _h(self, i): ...\n"
        "def j(k, /, m: int) -> int: ...\n"
    )
    assert {
        name: missing_annotations(function, is_method="." in name)
        for name, function in public_functions(ast.parse(source).body)
    } == {
        "A.__init__": ["c", "b", "d"],
        "A.e": ["return"],
        "A.g": [],
        "j": ["k"],
    }
